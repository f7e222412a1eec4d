/* Exponentials, logarithms and powers in f64. Bounds are in units in the last place (ULP). */
#include "remainder.h"

/* 1 ULP. */
VMPK_MATH double vmpk_exp_f64(double x) { return expShifted(x, 0.0, 0.0); }

/* 1.1 ULP. */
VMPK_MATH double vmpk_exp2_f64(double x) {
  x = within64(x, -1080.0, 1025.0);
  double n = (x + ROUND_F64) - ROUND_F64;
  return scale64(1.0 + reducedExpm1((x - n) * LN2_F64, 0.0, 0.0), n);
}

/* 2 ULP. */
VMPK_MATH double vmpk_expm1_f64(double x) {
  double t = within64(x, -40.0, 710.0);
  double n = (t * LOG2E_F64 + ROUND_F64) - ROUND_F64;
  double p = reducedExpm1(t, n, 0.0), half = power64(n - 1.0);
  return select64(absolute64(x) < 0x1p-54, x, 2.0 * mad64(half, p, half - 0.5));
}

/* x = m * 2^e with m in [sqrt(1/2), sqrt(2)), for finite x > 0; returns m - 1, which is exact. */
VMPK_INLINE double splitMantissa(double x, double *e) {
  int tiny = x < 0x1p-1022;
  double scaled = select64(tiny, x * 0x1p54, x);
  uint64_t shifted = bitsOf64(scaled) + (0x3ff0000000000000u - 0x3fe6a09e667f3bcdu);
  double exponent = doubleOf((shifted >> 52) | 0x4330000000000000u) - (0x1p52 + 1023.0);
  *e = exponent - select64(tiny, 54.0, 0.0);
  return doubleOf((shifted & 0xfffffffffffffu) + 0x3fe6a09e667f3bcdu) - 1.0;
}

/* log(1 + f) = f - part. With s = f / (2 + f): log(1 + f) = 2 s + s * R(s * s), and 2 s = f - f * f / 2 + s * f * f
 * / 2. */
VMPK_INLINE double logPart(double f, double extra) {
  double s = f / (2.0 + f), z = s * s, half = 0.5 * f * f;
  double rest =
      z * POLYNOMIAL64(z, 0x1.5555555555592p-1, 0x1.999999997fd7cp-2, 0x1.24924941f4c63p-2, 0x1.c71c52062c40cp-3,
                       0x1.74663f9b2f7b2p-3, 0x1.39a1a7aa6d5c4p-3, 0x1.2f062d3f955d2p-3);
  return half - mad64(s, half + rest, extra);
}

VMPK_INLINE double logSpecial(double x, double y) {
  y = select64(x < INFINITY_F64, y, INFINITY_F64);
  return select64(x > 0.0, y, select64(x == 0.0, -INFINITY_F64, NAN_F64));
}

/* 1 ULP. */
VMPK_MATH double vmpk_log_f64(double x) {
  double e, f = splitMantissa(x, &e);
  return logSpecial(x, mad64(e, LN2_HIGH, f - logPart(f, e * LN2_LOW)));
}

/* 2 ULP. */
VMPK_MATH double vmpk_log2_f64(double x) {
  double e, f = splitMantissa(x, &e);
  return logSpecial(x, mad64(f - logPart(f, 0.0), LOG2E_F64, e));
}

/* 2 ULP. */
VMPK_MATH double vmpk_log10_f64(double x) {
  double e, f = splitMantissa(x, &e);
  double y = mad64(f - logPart(f, 0.0), 0x1.bcb7b1526e50ep-2, e * 0x1.9fef311f12b36p-42);
  return logSpecial(x, mad64(e, 0x1.34413509f6p-2, y));
}

/* 2 ULP. */
VMPK_MATH double vmpk_log1p_f64(double x) {
  // log(u) for the rounded u = 1 + x, and what rounding lost.
  double u = 1.0 + x;
  double lost = select64(x < 1.0, x - (u - 1.0), 1.0 - (u - x));
  double e, f = splitMantissa(u, &e);
  double y = mad64(e, LN2_HIGH, f - logPart(f, mad64(e, LN2_LOW, lost / u)));
  return select64(x == 0.0, x, logSpecial(u, y));
}

/* log(x) to 2^-65. */
VMPK_INLINE vmpk_pair logPair(double x) {
  double e, f = splitMantissa(x, &e);
  double d = 2.0 + f, d_low = f - (d - 2.0);
  double s = f / d;
  vmpk_pair sd = exactProduct(s, d);
  double s_low = (((f - sd.high) - sd.low) - s * d_low) / d;
  vmpk_pair z = exactProduct(s, s);
  z.low += 2.0 * s * s_low;
  // s * z * t with t = 2/3 + z * g(z).
  double g =
      POLYNOMIAL64(z.high, 0x1.9999999999996p-2, 0x1.2492492493036p-2, 0x1.c71c71c5804fep-3, 0x1.745d18325e92ap-3,
                   0x1.3b1362b2e0d32p-3, 0x1.1120b61b894e1p-3, 0x1.de335d4abbb60p-4, 0x1.eb11c32410819p-4);
  vmpk_pair t = exactSumOrdered(0x1.5555555555555p-1, z.high * g);
  t.low += 0x1.5555555555555p-55;
  vmpk_pair v = exactProduct(z.high, t.high);
  v.low += z.high * t.low + z.low * t.high;
  vmpk_pair w = exactProduct(s, v.high);
  w.low += s * v.low + s_low * v.high;
  vmpk_pair sum = exactSum(e * LN2_HIGH, 2.0 * s);
  vmpk_pair all = exactSum(sum.high, w.high);
  all.low += sum.low + (e * LN2_LOW + (2.0 * s_low + w.low));
  return exactSumOrdered(all.high, all.low);
}

VMPK_INLINE int isInteger(double a) { return (a >= 0x1p52) | ((a + 0x1p52) - 0x1p52 == a); }

/* 1.1 ULP. */
VMPK_MATH double vmpk_pow_f64(double x, double y) {
  double a = absolute64(x), b = absolute64(y);
  vmpk_pair log = logPair(a);
  vmpk_pair product = exactProduct(y, log.high);
  double low = mad64(y, log.low, product.low);
  low = select64(absolute64(product.high) < 800.0, low, 0.0);
  double r = expShifted(product.high, low, 0.0);

  int negative = (int)(bitsOf64(x) >> 63), whole = isInteger(b), odd = whole & !isInteger(0.5 * b);
  r = select64(a == 0.0, select64(y < 0.0, INFINITY_F64, 0.0), r);
  r = select64(a == INFINITY_F64, select64(y < 0.0, 0.0, INFINITY_F64), r);
  r = select64(a == 1.0, 1.0, r);
  r = select64(negative & odd, -r, r);
  r = select64((x < 0.0) & (a < INFINITY_F64) & !whole, NAN_F64, r);
  r = select64((x != x) | (y != y), NAN_F64, r);
  return select64((x == 1.0) | (y == 0.0), 1.0, r);
}

/* 2 ULP. */
VMPK_MATH double vmpk_sinh_f64(double x) {
  double a = absolute64(x), z = a * a;
  double small =
      mad64(a * z,
            POLYNOMIAL64(z, 0x1.5555555555555p-3, 0x1.1111111111111p-7, 0x1.a01a01a019fbdp-13, 0x1.71de3a557431fp-19,
                         0x1.ae645673db898p-26, 0x1.61246b20c75abp-33, 0x1.ae75567c2b7b7p-41, 0x1.9a7f5a49fe820p-49),
            a);
  double h = expShifted(a, 0.0, -1.0);
  return withSign64(select64(a < 1.0, small, h - 0.25 / h), x);
}

/* 2 ULP. */
VMPK_MATH double vmpk_cosh_f64(double x) {
  double h = expShifted(absolute64(x), 0.0, -1.0);
  return h + 0.25 / h;
}

/* 3 ULP. */
VMPK_MATH double vmpk_tanh_f64(double x) {
  double a = within64(absolute64(x), 0.0, 22.0);
  double t = vmpk_expm1_f64(2.0 * a);
  return withSign64(t / (t + 2.0), x);
}

/* 3 ULP. */
VMPK_MATH double vmpk_asinh_f64(double x) {
  double a = absolute64(x);
  int large = a > 0x1p60;
  double z = a * a;
  // a + sqrt(a * a + 1) - 1, or a itself when squares overflow, whose logarithm is ln 2 too small.
  double t = vmpk_log1p_f64(select64(large, a, a + z / (1.0 + __builtin_sqrt(z + 1.0))));
  return withSign64(t + select64(large, LN2_F64, 0.0), x);
}

/* 3 ULP. */
VMPK_MATH double vmpk_acosh_f64(double x) {
  double t = x - 1.0;
  int large = x > 0x1p60;
  double y = vmpk_log1p_f64(select64(large, x, t + __builtin_sqrt(2.0 * t + t * t))) + select64(large, LN2_F64, 0.0);
  return select64(x >= 1.0, y, NAN_F64);
}

/* 3 ULP. */
VMPK_MATH double vmpk_atanh_f64(double x) {
  double a = absolute64(x);
  double y = withSign64(0.5 * vmpk_log1p_f64(2.0 * a / (1.0 - a)), x);
  return select64(a > 1.0, NAN_F64, y);
}

/* 1 ULP. */
VMPK_MATH double vmpk_cbrt_f64(double x) {
  double a = absolute64(x), e;
  double m = splitMantissa(a, &e) + 1.0;
  // a = m * 2^e = (m * 2^(e mod 3)) * 2^(3 * third)
  double third = ((e - 1.0) * (1.0 / 3.0) + ROUND_F64) - ROUND_F64, rest = e - 3.0 * third;
  m = m * select64(rest > 1.5, 4.0, select64(rest > 0.5, 2.0, 1.0));
  double y = POLYNOMIAL64(m, 0x1.412ad897d14ffp-1, 0x1.cbfec1a3398f9p-2, -0x1.572cdef6ca1dcp-4, 0x1.3a1457ff3c4a4p-7,
                          -0x1.c5251dfaf6df9p-12);
  double cube = y * y * y;
  y = y * (cube + 2.0 * m) / (2.0 * cube + m);
  cube = y * y * y;
  y = y * (cube + 2.0 * m) / (2.0 * cube + m);
  y = y - (y - m / (y * y)) * (1.0 / 3.0);
  y = withSign64(y * power64(third), x);
  return select64((a == 0.0) | !(a < INFINITY_F64), x, y);
}

/* 1.5 ULP. */
VMPK_MATH double vmpk_rsqrt_f64(double x) { return 1.0 / __builtin_sqrt(x); }

/* Exact. */
double vmpk_fmod_f64(double x, double y) { return remainder64(x, y); }
