// Maximum, exponential and sum of a row share one workgroup; the row's values stay in the cache.
// CHECK: vmpk.dispatch @reduce_0
// CHECK-NOT: vmpk.dispatch @
// CHECK: func.func private @reduce_0
// CHECK: arith.maximumf
// CHECK: math.exp
// CHECK: arith.addf {{.*}} fastmath<reassoc,contract>
#id = affine_map<(d0, d1) -> (d0, d1)>
#row = affine_map<(d0, d1) -> (d0)>
func.func @main(%x: tensor<32x64xf32>) -> (tensor<32x64xf32>, tensor<32xf32>) {
  %lowest = arith.constant 0xFF800000 : f32
  %zero = arith.constant 0.0 : f32
  %re = tensor.empty() : tensor<32xf32>
  %rf = linalg.fill ins(%lowest : f32) outs(%re : tensor<32xf32>) -> tensor<32xf32>
  %max = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%x : tensor<32x64xf32>) outs(%rf : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %m = arith.maximumf %a, %o : f32
    linalg.yield %m : f32
  } -> tensor<32xf32>
  %e = tensor.empty() : tensor<32x64xf32>
  %exp = linalg.generic {indexing_maps = [#id, #row, #id], iterator_types = ["parallel", "parallel"]} ins(%x, %max : tensor<32x64xf32>, tensor<32xf32>) outs(%e : tensor<32x64xf32>) {
  ^bb0(%a: f32, %b: f32, %o: f32):
    %d = arith.subf %a, %b : f32
    %r = math.exp %d : f32
    linalg.yield %r : f32
  } -> tensor<32x64xf32>
  %sf = linalg.fill ins(%zero : f32) outs(%re : tensor<32xf32>) -> tensor<32xf32>
  %sum = linalg.generic {indexing_maps = [#id, #row], iterator_types = ["parallel", "reduction"]} ins(%exp : tensor<32x64xf32>) outs(%sf : tensor<32xf32>) {
  ^bb0(%a: f32, %o: f32):
    %s = arith.addf %a, %o : f32
    linalg.yield %s : f32
  } -> tensor<32xf32>
  return %exp, %sum : tensor<32x64xf32>, tensor<32xf32>
}
