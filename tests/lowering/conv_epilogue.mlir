// Padding, batch-norm scale, bias and relu become operands of one kernel call; both transposes stay at the edges.
// CHECK-LABEL: @schedule.0
// CHECK: vmpk.dispatch @copy_0
// CHECK: vmpk.dispatch @conv_1
// CHECK: vmpk.dispatch @copy_2
// CHECK-NOT: vmpk.dispatch @
// CHECK: func.func private @conv_1
// CHECK-DAG: %[[ZERO:.*]] = arith.constant 0.000000e+00 : f32
// CHECK-DAG: %[[INF:.*]] = arith.constant 0x7F800000 : f32
// CHECK: vmpk.call "vmpk_conv_f32"({{.*}}, %[[ZERO]], %[[INF]] :
// CHECK: vmpk.weight @{{.*}} : tensor<1x27x16xf32>
// CHECK: vmpk.weight @{{.*}} : tensor<8xf32>
#id = affine_map<(d0, d1, d2, d3) -> (d0, d1, d2, d3)>
#channel = affine_map<(d0, d1, d2, d3) -> (d1)>
func.func @main(%x: tensor<2x3x16x16xf32>) -> tensor<2x8x8x8xf32> {
  %zero = arith.constant 0.0 : f32
  %nhwc = tensor.empty() : tensor<2x16x16x3xf32>
  %t = linalg.transpose ins(%x : tensor<2x3x16x16xf32>) outs(%nhwc : tensor<2x16x16x3xf32>) permutation = [0, 2, 3, 1]
  %p = tensor.pad %t low[0, 1, 1, 0] high[0, 1, 1, 0] {
  ^bb0(%a: index, %b: index, %c: index, %d: index):
    tensor.yield %zero : f32
  } : tensor<2x16x16x3xf32> to tensor<2x18x18x3xf32>
  %w = arith.constant dense<0.5> : tensor<3x3x3x8xf32>
  %e = tensor.empty() : tensor<2x8x8x8xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x8x8x8xf32>) -> tensor<2x8x8x8xf32>
  %conv = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>} ins(%p, %w : tensor<2x18x18x3xf32>, tensor<3x3x3x8xf32>) outs(%f : tensor<2x8x8x8xf32>) -> tensor<2x8x8x8xf32>
  %back = linalg.transpose ins(%conv : tensor<2x8x8x8xf32>) outs(%e : tensor<2x8x8x8xf32>) permutation = [0, 3, 1, 2]
  %scale = arith.constant dense<[1., 2., 3., 4., 5., 6., 7., 8.]> : tensor<8xf32>
  %y = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel"]} ins(%back, %scale : tensor<2x8x8x8xf32>, tensor<8xf32>) outs(%e : tensor<2x8x8x8xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %m = arith.mulf %a, %b : f32
    %s = arith.addf %m, %b : f32
    %r = arith.maximumf %s, %zero : f32
    linalg.yield %r : f32
  } -> tensor<2x8x8x8xf32>
  return %y : tensor<2x8x8x8xf32>
}
