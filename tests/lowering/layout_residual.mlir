// A residual block whose convolutions work in NHWC while the graph is NCHW: only the graph's input and output are
// transposed, and the sum reads both of its operands in order.
// CHECK: vmpk.dispatch @copy_0
// CHECK-COUNT-3: vmpk.dispatch @conv
// CHECK: vmpk.dispatch @copy_4
// CHECK-NOT: vmpk.dispatch @copy
// CHECK: func.func private @conv_2
// The sum, whose inner two dims are one loop.
// CHECK: memref.load %{{.*}}[%[[A:.*]], %[[B:.*]], %[[C:.*]]] : memref<1x8x128xf32>
// CHECK: memref.load %{{.*}}[%[[A]], %[[B]], %[[C]]] : memref<1x8x128xf32>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
func.func private @conv(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<0.5> : tensor<1x1x16x16xf32>
  %ie = tensor.empty() : tensor<1x8x8x16xf32>
  %oe = tensor.empty() : tensor<1x16x8x8xf32>
  %t = linalg.transpose ins(%x : tensor<1x16x8x8xf32>) outs(%ie : tensor<1x8x8x16xf32>) permutation = [0, 2, 3, 1]
  %f = linalg.fill ins(%zero : f32) outs(%ie : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %c = linalg.conv_2d_nhwc_hwcf ins(%t, %w : tensor<1x8x8x16xf32>, tensor<1x1x16x16xf32>) outs(%f : tensor<1x8x8x16xf32>) -> tensor<1x8x8x16xf32>
  %b = linalg.transpose ins(%c : tensor<1x8x8x16xf32>) outs(%oe : tensor<1x16x8x8xf32>) permutation = [0, 3, 1, 2]
  %n = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%b : tensor<1x16x8x8xf32>) outs(%oe : tensor<1x16x8x8xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.negf %a : f32
    linalg.yield %m : f32
  } -> tensor<1x16x8x8xf32>
  return %n : tensor<1x16x8x8xf32>
}
func.func @main(%x: tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32> {
  %e = tensor.empty() : tensor<1x16x8x8xf32>
  %a = call @conv(%x) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %b = call @conv(%a) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%a, %b : tensor<1x16x8x8xf32>, tensor<1x16x8x8xf32>) outs(%e : tensor<1x16x8x8xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.addf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<1x16x8x8xf32>
  %c = call @conv(%s) : (tensor<1x16x8x8xf32>) -> tensor<1x16x8x8xf32>
  return %c : tensor<1x16x8x8xf32>
}
