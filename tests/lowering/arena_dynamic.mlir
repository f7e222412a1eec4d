// The arena and the output's dim are functions of the symbol alone; the two inputs' equal names are one symbol.
// CHECK-LABEL: func.func @schedule.0
// CHECK-SAME: outputs = [{dims = [-1, 16], dtype = 1 : i32, name = "output_0"}], symbols = [{{.*}}name = "n"}]
// CHECK-LABEL: func.func private @measure.0({{.*}}) -> (index, index)
// CHECK-NOT: memref
// CHECK: return
func.func @main(%a: tensor<?x8xf32> {vmpk.name = "a", vmpk.dims = ["n", 8]}, %b: tensor<?x8xf32> {vmpk.name = "b", vmpk.dims = ["n", 8]}) -> tensor<?x16xf32> {
  %zero = arith.constant 0.0 : f32
  %c0 = arith.constant 0 : index
  %n = tensor.dim %a, %c0 : tensor<?x8xf32>
  %w = arith.constant dense<0.5> : tensor<16x16xf32>
  %ab = tensor.concat dim(1) %a, %b : (tensor<?x8xf32>, tensor<?x8xf32>) -> tensor<?x16xf32>
  %e = tensor.empty(%n) : tensor<?x16xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<?x16xf32>) -> tensor<?x16xf32>
  %y = linalg.matmul ins(%ab, %w : tensor<?x16xf32>, tensor<16x16xf32>) outs(%f : tensor<?x16xf32>) -> tensor<?x16xf32>
  return %y : tensor<?x16xf32>
}
