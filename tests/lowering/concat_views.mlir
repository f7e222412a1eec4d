// Convolutions whose results are joined along the channels write their parts of the whole: only the graph's input and
// output are transposed, and of the first part, which another convolution reads as well, one copy is made.
// CHECK: vmpk.dispatch @copy_0[
// CHECK: vmpk.dispatch @conv_1[
// CHECK: vmpk.dispatch @conv_2[
// CHECK: vmpk.dispatch @conv_3[
// CHECK: vmpk.dispatch @copy_4[
// CHECK-NOT: vmpk.dispatch @
// The copy of the first part is in the group of its convolution.
// CHECK: func.func private @conv_1
// CHECK: vmpk.call "vmpk_conv_f32"
// CHECK: memref.store {{.*}} memref<{{.*}}strided<
// The second part is written where it belongs: its pixels are 32 apart.
// CHECK: func.func private @conv_2
// CHECK-NOT: memref.store
// CHECK: vmpk.call "vmpk_conv_f32"{{.*}}strided<[2048, 256, 32, 1], offset: ?>
// CHECK: func.func private @conv_3
func.func private @conv(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<0.5> : tensor<1x1x16x16xf32>
  %ie = tensor.empty() : tensor<1x8x8x16xf32>
  %oe = tensor.empty() : tensor<1x16x8x8xf32>
  %t = linalg.transpose ins(%x : tensor<1x16x8x8xf32>) outs(%ie : tensor<1x8x8x16xf32>) permutation = [0, 2, 3, 1]
  %f = linalg.fill ins(%zero : f32) outs(%ie : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%t, %w : tensor<1x8x8x16xf32>, tensor<1x1x16x16xf32>) outs(%f : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %b = linalg.transpose ins(%c : tensor<1x8x8x16xf32>) outs(%oe : tensor<1x16x8x8xf32>) permutation = [0, 3, 1, 2]
  return %b : tensor<1x16x8x8xf32>
}
func.func @main(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<0.5> : tensor<1x1x32x16xf32>
  %a = call @conv(%x) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %b = call @conv(%a) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %whole = tensor.concat dim(1) %a, %b : (tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) -> tensor<1x32x8x8xf32>
  %ie = tensor.empty() : tensor<1x8x8x32xf32>
  %oe = tensor.empty() : tensor<1x16x8x8xf32>
  %ce = tensor.empty() : tensor<1x8x8x16xf32>
  %t = linalg.transpose ins(%whole : tensor<1x32x8x8xf32>) outs(%ie : tensor<1x8x8x32xf32>) permutation = [0, 2, 3, 1]
  %f = linalg.fill ins(%zero : f32) outs(%ce : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%t, %w : tensor<1x8x8x32xf32>, tensor<1x1x32x16xf32>) outs(%f : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %y = linalg.transpose ins(%c : tensor<1x8x8x16xf32>) outs(%oe : tensor<1x16x8x8xf32>) permutation = [0, 3, 1, 2]
  return %y : tensor<1x16x8x8xf32>
}
