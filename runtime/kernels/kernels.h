/* The kernel library: what generated dispatches call.
 *
 * Each ISA level compiles the same entry points to bitcode; the last mile links the level of its target. A signature
 * holds only pointers, i32, i64, float and double, so that no calling convention treats it in its own way. All sizes
 * and strides are i64 counts of elements. Kernels are pure: no globals, no allocation, no failure; pointers to
 * different operands do not alias (but for the ones said to). Strides along the last dim of a tensor are 1.
 *
 * Packed weights ("panels") have one layout on all targets: 16 columns wide,
 *     panels[ceil(n / 16)][k][16]   f32, the columns past n are zero, 64-byte aligned. */
#ifndef VMPK_KERNELS_H
#define VMPK_KERNELS_H

#include <stdint.h>

#define VMPK_PANEL 16

/* c[i][j] = min(max(bias[j] + sum_k a[i][k] * b[k][j], low), high), i < m, j < n.
 * b: panels of k rows. bias: n floats or NULL (zeros). NaN sums stay NaN. c row stride ldc, a row stride lda. */
void vmpk_gemm_f32(const float *a, int64_t lda, const float *b, float *c, int64_t ldc, int64_t m, int64_t n, int64_t k,
                   const float *bias, float low, float high);

/* Packs the panels [panel_begin, panel_end) of a k x n matrix with strides b[i * row_stride + j * column_stride].
 * panels: the start of the whole packed matrix. */
void vmpk_pack_panels_f32(const float *b, int64_t row_stride, int64_t column_stride, float *panels, int64_t k,
                          int64_t n, int64_t panel_begin, int64_t panel_end);

/* 2-D convolution on one NHWC image, as implicit GEMM, for the flattened output pixels [pixel_begin, pixel_end)
 * (pixel = oy * out_width + ox) and n output channels:
 *   y[pixel * y_stride + j] = clamp(bias[j] + sum_{ky,kx,ci} x[iy][ix][ci] * w[(ky * kw + kx) * c + ci][j])
 *   iy = oy * stride_h + ky * dilation_h - pad_top, ix likewise; taps outside the image count as zero.
 * x: height x width pixels, x_stride elements apart, c channels are read of each (a group's slice when x_stride > c).
 * w: panels of kh * kw * c rows. y: the image's first output pixel. */
void vmpk_conv_f32(const float *x, const float *w, float *y, int64_t height, int64_t width, int64_t c, int64_t x_stride,
                   int64_t kh, int64_t kw, int64_t stride_h, int64_t stride_w, int64_t dilation_h, int64_t dilation_w,
                   int64_t pad_top, int64_t pad_left, int64_t out_width, int64_t y_stride, int64_t pixel_begin,
                   int64_t pixel_end, int64_t n, const float *bias, float low, float high);

/* Depthwise 2-D convolution (channel multiplier 1) on one NHWC image, for output rows [row_begin, row_end):
 *   y[oy][ox][ci] = clamp(bias[ci] + sum_{ky,kx} x[iy][ix][ci] * w[(ky * kw + kx) * w_stride + ci])
 * x and y have pixels c elements apart. w_stride >= c. bias: c floats or NULL. */
void vmpk_depthwise_f32(const float *x, const float *w, float *y, int64_t height, int64_t width, int64_t c,
                        int64_t w_stride, int64_t kh, int64_t kw, int64_t stride_h, int64_t stride_w,
                        int64_t dilation_h, int64_t dilation_w, int64_t pad_top, int64_t pad_left, int64_t out_width,
                        int64_t row_begin, int64_t row_end, const float *bias, float low, float high);

/* 3 x 3 convolution with stride 1 and dilation 1 on one NHWC image by Winograd's F(2x2, 3x3) or F(4x4, 3x3), for
 * output rows [row_begin, row_end): the same values as vmpk_conv_f32 but for rounding. F(2x2) takes 16
 * multiplications for 4 results (direct: 36), F(4x4) 36 for 16 (direct: 144). An error stays below 1e-6 for F(2x2),
 * 1e-5 for F(4x4), times 9 * c * the largest |x| and |w|. Infinities in x become NaN in the results of their tile.
 * w: one packed c x n matrix for each position of a tile, 16 or 36 of them: U = G g G^T, as in Lavin and Gray,
 * "Fast Algorithms for Convolutional Neural Networks", 2015, section 4. row_begin is a multiple of the tile's 2 or
 * 4 rows. c and n are at least 16. bias: n floats or NULL. block: tiles that are worked on together. scratch: 16 or
 * 36 times (block * (c + n) + 32) floats. */
void vmpk_winograd2_f32(const float *x, const float *w, float *y, float *scratch, int64_t height, int64_t width,
                        int64_t c, int64_t x_stride, int64_t pad_top, int64_t pad_left, int64_t out_width,
                        int64_t y_stride, int64_t row_begin, int64_t row_end, int64_t n, int64_t block,
                        const float *bias, float low, float high);
void vmpk_winograd4_f32(const float *x, const float *w, float *y, float *scratch, int64_t height, int64_t width,
                        int64_t c, int64_t x_stride, int64_t pad_top, int64_t pad_left, int64_t out_width,
                        int64_t y_stride, int64_t row_begin, int64_t row_end, int64_t n, int64_t block,
                        const float *bias, float low, float high);

/* Scalar math, written branch-free (selects only) so that the loop vectorizer widens the calls once they are inlined.
 * The error bound of each is stated at its definition and tested in ULP against a double (or wider) reference.
 * Special values (inf, NaN, signed zero, out of domain) are C99 Annex F's. */
/* clang-format off */
#define VMPK_MATH_UNARY(X)                                                                                             \
  X(exp) X(exp2) X(expm1) X(log) X(log2) X(log10) X(log1p) X(sin) X(cos) X(tan) X(asin) X(acos) X(atan) X(sinh)        \
  X(cosh) X(tanh) X(asinh) X(acosh) X(atanh) X(erf) X(erfc) X(cbrt) X(rsqrt)
/* clang-format on */
#define VMPK_DECLARE_UNARY(name)                                                                                       \
  float vmpk_##name##_f32(float x);                                                                                    \
  double vmpk_##name##_f64(double x);
VMPK_MATH_UNARY(VMPK_DECLARE_UNARY)
#undef VMPK_DECLARE_UNARY
float vmpk_pow_f32(float x, float y);
double vmpk_pow_f64(double x, double y);
float vmpk_atan2_f32(float y, float x);
double vmpk_atan2_f64(double y, double x);
/* C's fmod: exact. */
float vmpk_fmod_f32(float x, float y);
double vmpk_fmod_f64(double x, double y);

#endif /* VMPK_KERNELS_H */
