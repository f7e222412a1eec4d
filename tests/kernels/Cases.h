/* Checks of the kernels that need no C library: they run as part of a host test, and alone on any machine.
 *
 * Inputs are multiples of 1/8 in [-1, 1], so that every sum is exact in f32 whatever the order or fusion of its terms:
 * results must be equal to the reference, bit for bit. Around each result lies a margin that must stay untouched; the
 * operands end where endOperandsAt says, so that a page behind them catches whoever reads on. */
#ifndef VMPK_TESTS_KERNELS_CASES_H
#define VMPK_TESTS_KERNELS_CASES_H

#ifdef __cplusplus
extern "C" {
#endif

#include "runtime/kernels/kernels.h"

/* Operands are the input, the weights, the packed weights, the bias and scratch, of at most so many floats each. */
enum { CASES_OPERANDS = 5, CASES_CAPACITY = 1 << 18 };
void endOperandsAt(float *const ends[CASES_OPERANDS]);

/* One level's entry points. */
typedef struct {
  void (*gemm)(const float *, int64_t, const float *, float *, int64_t, int64_t, int64_t, int64_t, const float *, float,
               float);
  void (*pack)(const float *, int64_t, int64_t, float *, int64_t, int64_t, int64_t, int64_t);
  void (*conv)(const float *, const float *, float *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
               int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const float *,
               float, float);
  void (*depthwise)(const float *, const float *, float *, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t,
                    int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const float *,
                    float, float);
  /* F(2x2) and F(4x4). */
  void (*winograd[2])(const float *, const float *, float *, float *, int64_t, int64_t, int64_t, int64_t, int64_t,
                      int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, int64_t, const float *, float, float);
} kernels_t;

typedef struct {
  int m, n, k;
} gemm_case_t;

typedef struct {
  int height, width, c, n, kh, kw, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left, pad_bottom, pad_right;
} window_case_t;

extern const gemm_case_t gemm_cases[];
extern const int gemm_case_count;
extern const window_case_t conv_cases[];
extern const int conv_case_count;
extern const window_case_t depthwise_cases[];
extern const int depthwise_case_count;

typedef struct {
  int height, width, c, n, pad_top, pad_left, pad_bottom, pad_right, block;
} winograd_case_t;

extern const winograd_case_t winograd_cases[];
extern const int winograd_case_count;

/* Each returns the number of wrong elements. */
int checkGemm(const kernels_t *kernels, const gemm_case_t *shape);
int checkConv(const kernels_t *kernels, const window_case_t *shape);
int checkDepthwise(const kernels_t *kernels, const window_case_t *shape);
int checkWinograd(const kernels_t *kernels, const winograd_case_t *shape);
int checkSpecials(const kernels_t *kernels);

#ifdef __cplusplus
}
#endif

#endif /* VMPK_TESTS_KERNELS_CASES_H */
