// A transposed and doubled constant is a constant: only its bytes are left.
// CHECK: vmpk.dispatch @elementwise_0
// CHECK-NOT: vmpk.dispatch @
// CHECK: vmpk.weight @{{.*}} = dense<{{\[\[}}2.000000e+00, 6.000000e+00], [4.000000e+00, 8.000000e+00]]> : tensor<2x2xf32>
#id = affine_map<(d0, d1) -> (d0, d1)>
func.func @main(%x: tensor<2x2xf32>) -> tensor<2x2xf32> {
  %two = arith.constant 2.0 : f32
  %c = arith.constant dense<[[1., 2.], [3., 4.]]> : tensor<2x2xf32>
  %e = tensor.empty() : tensor<2x2xf32>
  %t = linalg.transpose ins(%c : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) permutation = [1, 0]
  %d = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel"]} ins(%t : tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.mulf %a, %two : f32
    linalg.yield %m : f32
  } -> tensor<2x2xf32>
  %y = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %d : tensor<2x2xf32>, tensor<2x2xf32>) outs(%e : tensor<2x2xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %s = arith.addf %a, %b : f32
    linalg.yield %s : f32
  } -> tensor<2x2xf32>
  return %y : tensor<2x2xf32>
}
