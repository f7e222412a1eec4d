/* What the scalar math functions are built of: no branch, no table, no call, so that loops over them vectorize.
 *
 * Rounding to an integer adds 1.5 * 2^(mantissa bits): the sum's low bits are the integer, in two's complement. That is
 * the same everywhere, also where rint would be a library call, and needs no conversion between types. */
#ifndef VMPK_KERNELS_MATH_H
#define VMPK_KERNELS_MATH_H

#include "level.h"

#define VMPK_MATH __attribute__((always_inline))

#define INFINITY_F32 __builtin_inff()
#define INFINITY_F64 __builtin_inf()
#define NAN_F32 __builtin_nanf("")
#define NAN_F64 __builtin_nan("")

#define LN2_F64 0x1.62e42fefa39efp-1
#define LOG2E_F64 0x1.71547652b82fep+0
/* ln 2 in two parts, the first short enough for products with exponents to be exact. */
#define LN2_HIGH 0x1.62e42feep-1
#define LN2_LOW 0x1.a39ef35793c76p-33

VMPK_INLINE uint32_t bitsOf32(float x) { return __builtin_bit_cast(uint32_t, x); }
VMPK_INLINE float floatOf(uint32_t bits) { return __builtin_bit_cast(float, bits); }
VMPK_INLINE uint64_t bitsOf64(double x) { return __builtin_bit_cast(uint64_t, x); }
VMPK_INLINE double doubleOf(uint64_t bits) { return __builtin_bit_cast(double, bits); }

/* Both values are there already: a select, never a branch. */
VMPK_INLINE float select32(int condition, float yes, float no) { return condition ? yes : no; }
VMPK_INLINE double select64(int condition, double yes, double no) { return condition ? yes : no; }

VMPK_INLINE float absolute32(float x) { return floatOf(bitsOf32(x) & 0x7fffffffu); }
VMPK_INLINE double absolute64(double x) { return doubleOf(bitsOf64(x) & 0x7fffffffffffffffu); }
VMPK_INLINE float withSign32(float x, float sign) {
  return floatOf((bitsOf32(x) & 0x7fffffffu) | (bitsOf32(sign) & 0x80000000u));
}
VMPK_INLINE double withSign64(double x, double sign) {
  return doubleOf((bitsOf64(x) & 0x7fffffffffffffffu) | (bitsOf64(sign) & 0x8000000000000000u));
}

/* a * b + c, fused where the level can. Each use holds its bound either way. */
VMPK_INLINE float mad32(float a, float b, float c) {
#ifdef VMPK_FMA
  return __builtin_fmaf(a, b, c);
#else
  return a * b + c;
#endif
}
VMPK_INLINE double mad64(double a, double b, double c) {
#ifdef VMPK_FMA
  return __builtin_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/* Into [low, high]; NaN stays. */
VMPK_INLINE float within32(float x, float low, float high) {
  x = select32(x < low, low, x);
  return select32(x > high, high, x);
}
VMPK_INLINE double within64(double x, double low, double high) {
  x = select64(x < low, low, x);
  return select64(x > high, high, x);
}

/* The nearest integer to |x| < 2^22 (2^51), and what holds its bits. */
#define ROUND_F32 0x1.8p23f
#define ROUND_F64 0x1.8p52

/* 2^n for an integer n in the normal range. */
VMPK_INLINE float power32(float n) { return floatOf((bitsOf32(n + ROUND_F32) + 127) << 23); }
VMPK_INLINE double power64(double n) { return doubleOf((bitsOf64(n + ROUND_F64) + 1023) << 52); }

/* y * 2^n in two steps: the first is exact, so that a subnormal result is rounded once. */
VMPK_INLINE float scale32(float y, float n) {
  float half = (n * 0.5f + ROUND_F32) - ROUND_F32;
  return y * power32(half) * power32(n - half);
}
VMPK_INLINE double scale64(double y, double n) {
  double half = (n * 0.5 + ROUND_F64) - ROUND_F64;
  return y * power64(half) * power64(n - half);
}

/* Horner's rule over a constant list, lowest power first. */
VMPK_INLINE float horner32(const float *c, int count, float z) {
  float y = c[count - 1];
  VMPK_UNROLL for (int i = count - 2; i >= 0; --i) y = mad32(y, z, c[i]);
  return y;
}
VMPK_INLINE double horner64(const double *c, int count, double z) {
  double y = c[count - 1];
  VMPK_UNROLL for (int i = count - 2; i >= 0; --i) y = mad64(y, z, c[i]);
  return y;
}
#define POLYNOMIAL32(z, ...)                                                                                           \
  horner32((const float[]){__VA_ARGS__}, (int)(sizeof((const float[]){__VA_ARGS__}) / sizeof(float)), z)
#define POLYNOMIAL64(z, ...)                                                                                           \
  horner64((const double[]){__VA_ARGS__}, (int)(sizeof((const double[]){__VA_ARGS__}) / sizeof(double)), z)

/* An unevaluated sum, |low| at most half a unit in the last place of high. */
typedef struct {
  double high, low;
} vmpk_pair;

VMPK_INLINE vmpk_pair exactSum(double a, double b) {
  double sum = a + b, part = sum - a;
  return (vmpk_pair){sum, (a - (sum - part)) + (b - part)};
}

/* Likewise when |a| >= |b|. */
VMPK_INLINE vmpk_pair exactSumOrdered(double a, double b) {
  double sum = a + b;
  return (vmpk_pair){sum, b - (sum - a)};
}

VMPK_INLINE vmpk_pair exactProduct(double a, double b) {
  double product = a * b;
#ifdef VMPK_FMA
  return (vmpk_pair){product, __builtin_fma(a, b, -product)};
#else
  const double split = 0x1.0p27 + 1;
  double a_high = a * split - (a * split - a), b_high = b * split - (b * split - b);
  double a_low = a - a_high, b_low = b - b_high;
  return (vmpk_pair){product, ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low};
#endif
}

/* x = n * ln 2 + r; returns e^r - 1. */
VMPK_INLINE double reducedExpm1(double x, double n, double correction) {
  double r = mad64(n, -LN2_LOW, mad64(n, -LN2_HIGH, x)) + correction;
  double q = POLYNOMIAL64(r, 0x1.0000000000000p-1, 0x1.555555555555bp-3, 0x1.5555555555503p-5, 0x1.111111110ec45p-7,
                          0x1.6c16c16c30269p-10, 0x1.a01a01b38731ep-13, 0x1.a01a0137163e2p-16, 0x1.71ddf00b107f7p-19,
                          0x1.27e5b3452e576p-22, 0x1.af6c0d0b5d3d5p-26, 0x1.1e3ea71ec505fp-29);
  return mad64(r * r, q, r);
}

/* (e^(x + correction)) * 2^shift, in reach of the exponents. */
VMPK_INLINE double expShifted(double x, double correction, double shift) {
  x = within64(x, -750.0, 720.0);
  double n = (x * LOG2E_F64 + ROUND_F64) - ROUND_F64;
  return scale64(1.0 + reducedExpm1(x, n, correction), n + shift);
}

#endif /* VMPK_KERNELS_MATH_H */
