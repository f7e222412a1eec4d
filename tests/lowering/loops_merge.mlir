// Neighbouring loops that walk every operand contiguously become one: width and channels of a sum, but not where an
// operand is broadcast along one of them.
// CHECK-LABEL: func.func private @elementwise_0
// CHECK-DAG: memref.collapse_shape %{{.*}} {{\[\[}}0], [1], [2], [3, 4]] : memref<2x3x4x5x6xf32> into memref<2x3x4x30xf32>
// CHECK: memref.load %{{.*}}[%{{.*}}, %{{.*}}, %{{.*}}, %{{.*}}] : memref<2x3x4x30xf32>
// CHECK-LABEL: func.func private @elementwise_1
// CHECK-NOT: memref.collapse_shape
// CHECK: memref.load %{{.*}}[%{{.*}}] : memref<6xf32>
#id = affine_map<(a, n, h, w, c) -> (a, n, h, w, c)>
#channel = affine_map<(a, n, h, w, c) -> (c)>
func.func @contiguous(%x: tensor<2x3x4x5x6xf32>, %y: tensor<2x3x4x5x6xf32>) -> tensor<2x3x4x5x6xf32> {
  %e = tensor.empty() : tensor<2x3x4x5x6xf32>
  %s = linalg.generic {indexing_maps = [#id, #id, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%x, %y : tensor<2x3x4x5x6xf32>, tensor<2x3x4x5x6xf32>) outs(%e : tensor<2x3x4x5x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.addf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<2x3x4x5x6xf32>
  return %s : tensor<2x3x4x5x6xf32>
}
func.func @broadcast(%x: tensor<2x3x4x5x6xf32>, %y: tensor<6xf32>) -> tensor<2x3x4x5x6xf32> {
  %e = tensor.empty() : tensor<2x3x4x5x6xf32>
  %s = linalg.generic {indexing_maps = [#id, #channel, #id], iterator_types = ["parallel", "parallel", "parallel", "parallel", "parallel"]} ins(%x, %y : tensor<2x3x4x5x6xf32>, tensor<6xf32>) outs(%e : tensor<2x3x4x5x6xf32>) {
  ^bb0(%p: f32, %q: f32, %o: f32):
    %m = arith.addf %p, %q : f32
    linalg.yield %m : f32
  } -> tensor<2x3x4x5x6xf32>
  return %s : tensor<2x3x4x5x6xf32>
}
