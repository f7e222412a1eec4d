// A 3x3 convolution with stride 1 on a large enough image takes Winograd's way, with weights for 36 positions; on a
// small one, or with another stride, it stays direct.

// CHECK-LABEL: func.func private @winograd_0
// CHECK: vmpk.call "vmpk_winograd4_f32"
// CHECK-LABEL: func.func private @conv_1
// CHECK: vmpk.call "vmpk_conv_f32"
// CHECK-LABEL: func.func private @conv_3
// CHECK: vmpk.call "vmpk_conv_f32"
// CHECK: vmpk.weight {{.*}}tensor<36x2x32x16xf32>
// With --no-winograd all are direct.
// DIRECT-COUNT-3: vmpk.call "vmpk_conv_f32"
func.func @main(%image: tensor<1x58x58x32xf32>) -> (tensor<1x56x56x32xf32>, tensor<1x28x28x32xf32>, tensor<1x1x1x32xf32>) {
  %zero = arith.constant 0.0 : f32
  %w = arith.constant dense<0.5> : tensor<3x3x32x32xf32>
  %e0 = tensor.empty() : tensor<1x56x56x32xf32>
  %f0 = linalg.fill ins(%zero : f32) outs(%e0 : tensor<1x56x56x32xf32>) -> tensor<1x56x56x32xf32>
  %y0 = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%image, %w : tensor<1x58x58x32xf32>, tensor<3x3x32x32xf32>) outs(%f0 : tensor<1x56x56x32xf32>) -> tensor<1x56x56x32xf32>
  %e1 = tensor.empty() : tensor<1x28x28x32xf32>
  %f1 = linalg.fill ins(%zero : f32) outs(%e1 : tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
  %y1 = linalg.conv_2d_nhwc_hwcf {strides = dense<2> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%image, %w : tensor<1x58x58x32xf32>, tensor<3x3x32x32xf32>) outs(%f1 : tensor<1x28x28x32xf32>) -> tensor<1x28x28x32xf32>
  %corner = tensor.extract_slice %image[0, 0, 0, 0] [1, 3, 3, 32] [1, 1, 1, 1] : tensor<1x58x58x32xf32> to tensor<1x3x3x32xf32>
  %e2 = tensor.empty() : tensor<1x1x1x32xf32>
  %f2 = linalg.fill ins(%zero : f32) outs(%e2 : tensor<1x1x1x32xf32>) -> tensor<1x1x1x32xf32>
  %y2 = linalg.conv_2d_nhwc_hwcf {strides = dense<1> : tensor<2xi64>, dilations = dense<1> : tensor<2xi64>}
      ins(%corner, %w : tensor<1x3x3x32xf32>, tensor<3x3x32x32xf32>) outs(%f2 : tensor<1x1x1x32xf32>) -> tensor<1x1x1x32xf32>
  return %y0, %y1, %y2 : tensor<1x56x56x32xf32>, tensor<1x28x28x32xf32>, tensor<1x1x1x32xf32>
}
