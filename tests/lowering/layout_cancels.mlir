// relu between opposite transposes: nothing is moved.
// CHECK: vmpk.dispatch @elementwise_0
// CHECK-NOT: vmpk.dispatch @
// CHECK: %[[X:.*]] = memref.load %{{.*}}[%[[A:.*]], %[[B:.*]], %[[C:.*]]]
// CHECK: memref.store %{{.*}}, %{{.*}}[%[[A]], %[[B]], %[[C]]]
#id = affine_map<(d0, d1, d2) -> (d0, d1, d2)>
func.func @main(%x: tensor<2x3x4xf32>) -> tensor<2x3x4xf32> {
  %zero = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<3x4x2xf32>
  %t = linalg.transpose ins(%x : tensor<2x3x4xf32>) outs(%te : tensor<3x4x2xf32>) permutation = [1, 2, 0]
  %r = linalg.generic {indexing_maps = [#id, #id], iterator_types = ["parallel", "parallel", "parallel"]} ins(%t : tensor<3x4x2xf32>) outs(%te : tensor<3x4x2xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %a, %zero : f32
    linalg.yield %m : f32
  } -> tensor<3x4x2xf32>
  %be = tensor.empty() : tensor<2x3x4xf32>
  %b = linalg.transpose ins(%r : tensor<3x4x2xf32>) outs(%be : tensor<2x3x4xf32>) permutation = [2, 0, 1]
  return %b : tensor<2x3x4xf32>
}
