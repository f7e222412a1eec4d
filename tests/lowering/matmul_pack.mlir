// A right-hand side known only at run time is packed, straight from the matrix that the transpose reads.
// CHECK: vmpk.dispatch @pack_0
// CHECK-NEXT: vmpk.barrier
// CHECK: vmpk.dispatch @gemm_1
// CHECK-NOT: vmpk.dispatch @
// CHECK: vmpk.call "vmpk_pack_panels_f32"
// CHECK: vmpk.call "vmpk_gemm_f32"
func.func @main(%q: tensor<2x5x8xf32>, %k: tensor<2x7x8xf32>) -> tensor<2x5x7xf32> {
  %zero = arith.constant 0.0 : f32
  %te = tensor.empty() : tensor<2x8x7xf32>
  %t = linalg.transpose ins(%k : tensor<2x7x8xf32>) outs(%te : tensor<2x8x7xf32>) permutation = [0, 2, 1]
  %e = tensor.empty() : tensor<2x5x7xf32>
  %f = linalg.fill ins(%zero : f32) outs(%e : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  %y = linalg.batch_matmul ins(%q, %t : tensor<2x5x8xf32>, tensor<2x8x7xf32>) outs(%f : tensor<2x5x7xf32>) -> tensor<2x5x7xf32>
  return %y : tensor<2x5x7xf32>
}
