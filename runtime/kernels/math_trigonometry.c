/* Trigonometric and error functions in f64. Bounds are in units in the last place (ULP). */
#include "math.h"

#define PI_F64 0x1.921fb54442d18p+1
#define PI_LOW 0x1.1a62633145c07p-53
#define HALF_PI 0x1.921fb54442d18p+0
#define HALF_PI_LOW 0x1.1a62633145c07p-54

/* x = n * pi / 2 + r, exact to 2^-100 or so for |x| < 2^49; beyond, r is only kept small. Returns n's bits. */
VMPK_INLINE uint64_t reduceAngle(double x, vmpk_pair *r) {
  double n = (x * 0x1.45f306dc9c883p-1 + ROUND_F64) - ROUND_F64;
  n = select64(absolute64(x) < 0x1p49, n, 0.0);
  vmpk_pair first = exactProduct(n, HALF_PI), second = exactProduct(n, HALF_PI_LOW);
  vmpk_pair a = exactSum(x - first.high, -first.low);
  vmpk_pair b = exactSum(a.high, -second.high);
  double low = ((a.low + b.low) - second.low) + n * 0x1.f1976b7ed8fbcp-110;
  *r = exactSumOrdered(within64(b.high, -1.0, 1.0), low);
  return bitsOf64(n + ROUND_F64);
}

VMPK_INLINE double sinReduced(vmpk_pair r) {
  double z = r.high * r.high;
  double p = POLYNOMIAL64(z, -0x1.5555555555555p-3, 0x1.111111111110bp-7, -0x1.a01a01a018ae7p-13, 0x1.71de3a5339b63p-19,
                          -0x1.ae645298a0960p-26, 0x1.612092ef65175p-33, -0x1.aaa56396451f3p-41);
  return r.high + mad64(r.high * z, p, r.low * (1.0 - 0.5 * z));
}

VMPK_INLINE double cosReduced(vmpk_pair r) {
  double z = r.high * r.high, half = 0.5 * z, w = 1.0 - half;
  double p = POLYNOMIAL64(z, 0x1.5555555555555p-5, -0x1.6c16c16c16c10p-10, 0x1.a01a01a018decp-16,
                          -0x1.27e4fb75fd9f7p-22, 0x1.1eed8ca3d9a5fp-29, -0x1.939338793d473p-37, 0x1.aac5c6aa2b9e5p-45);
  return w + (((1.0 - w) - half) + mad64(z * z, p, -r.high * r.low));
}

/* sin(x + quarter * pi / 2). */
VMPK_INLINE double sinOfQuarter(double x, uint64_t quarter) {
  vmpk_pair r;
  uint64_t n = reduceAngle(x, &r) + quarter;
  double y = select64((n & 1) != 0, cosReduced(r), sinReduced(r));
  return doubleOf(bitsOf64(y) ^ ((n & 2) << 62));
}

/* 1 ULP for |x| < 2^49. */
VMPK_MATH double vmpk_sin_f64(double x) { return select64(x == 0.0, x, sinOfQuarter(x, 0)); }

/* 1 ULP for |x| < 2^49. */
VMPK_MATH double vmpk_cos_f64(double x) { return sinOfQuarter(x, 1); }

/* 3 ULP for |x| < 2^49. */
VMPK_MATH double vmpk_tan_f64(double x) {
  vmpk_pair r;
  uint64_t n = reduceAngle(x, &r);
  double s = sinReduced(r), c = cosReduced(r);
  int odd = (n & 1) != 0;
  double y = select64(odd, -c, s) / select64(odd, s, c);
  return select64(x == 0.0, x, y);
}

/* atan(y / x) for y, x >= 0 in one division: as base + atan(quotient) with |quotient| <= tan(pi / 8). */
VMPK_INLINE double atanOfRatio(double y, double x) {
  int low = y <= 0x1.a827999fcef32p-2 * x, middle = y <= 0x1.3504f333f9de6p+1 * x;
  double above = select64(low, y, select64(middle, y - x, -x));
  double below = select64(low, x, select64(middle, y + x, y));
  double q = above / below, z = q * q;
  double p = POLYNOMIAL64(z, -0x1.5555555555554p-2, 0x1.999999999965ap-3, -0x1.2492492475d8bp-3, 0x1.c71c71b77a782p-4,
                          -0x1.745d14c00e08ep-4, 0x1.3b136eb492771p-4, -0x1.110c7a2fb2db7p-4, 0x1.e1728a03c7a40p-5,
                          -0x1.ab80d47119920p-5, 0x1.70fa51b7a0e94p-5, -0x1.125518d64efb0p-5, 0x1.f25c62fdc7af2p-7);
  double base = select64(low, 0.0, select64(middle, 0.5 * HALF_PI, HALF_PI));
  double base_low = select64(low, 0.0, select64(middle, 0.5 * HALF_PI_LOW, HALF_PI_LOW));
  return base + (q + mad64(q * z, p, base_low));
}

/* 2 ULP. */
VMPK_MATH double vmpk_atan_f64(double x) { return withSign64(atanOfRatio(absolute64(x), 1.0), x); }

/* 2 ULP. */
VMPK_MATH double vmpk_atan2_f64(double y, double x) {
  double b = absolute64(y), a = absolute64(x);
  int both = (a == INFINITY_F64) & (b == INFINITY_F64), zero = (b == 0.0);
  // Sums must not overflow, tiny sides not vanish: scale by what both can bear.
  double scale =
      select64((a > 0x1p1000) | (b > 0x1p1000), 0x1p-60, select64((a < 0x1p-900) & (b < 0x1p-900), 0x1p60, 1.0));
  double r = atanOfRatio(select64(both, 1.0, b * scale), select64(both | zero, 1.0, a * scale));
  int negative = (int)(bitsOf64(x) >> 63);
  r = select64(negative, PI_F64 - (r - PI_LOW), r);
  r = select64((x != x) | (y != y), NAN_F64, r);
  return withSign64(r, y);
}

/* asin(s) = s + s * z * p(z), z = s * s <= 1/4. */
VMPK_INLINE double asinPolynomial(double z) {
  return z * POLYNOMIAL64(z, 0x1.5555555555578p-3, 0x1.333333332df7ap-4, 0x1.6db6db7226427p-5, 0x1.f1c71a8db0460p-6,
                          0x1.6e8bdfa852d66p-6, 0x1.1c49e29cf89fep-6, 0x1.ca20d09a8c733p-7, 0x1.757b678e32b36p-7,
                          0x1.61744f7d9da07p-7, 0x1.e2b9c59e113cap-9, 0x1.6493f778563bap-6, -0x1.59561c987a2cfp-6,
                          0x1.0bb0d44e4e5e6p-5);
}

/* 2.1 ULP. */
VMPK_MATH double vmpk_asin_f64(double x) {
  double a = absolute64(x);
  int large = a > 0.5;
  double z = select64(large, 0.5 * (1.0 - a), a * a), s = select64(large, __builtin_sqrt(z), a);
  double y = mad64(s, asinPolynomial(z), s);
  y = withSign64(select64(large, HALF_PI - (2.0 * y - HALF_PI_LOW), y), x);
  return select64(a > 1.0, NAN_F64, y);
}

/* 2 ULP. */
VMPK_MATH double vmpk_acos_f64(double x) {
  double a = absolute64(x);
  int large = a > 0.5;
  double z = select64(large, 0.5 * (1.0 - a), a * a), s = select64(large, __builtin_sqrt(z), x);
  double y = mad64(s, asinPolynomial(z), s);
  double outer = select64(x < 0.0, PI_F64 - (2.0 * y - PI_LOW), 2.0 * y);
  return select64(large, outer, HALF_PI - (y - HALF_PI_LOW)) + select64(a > 1.0, NAN_F64, 0.0);
}

/* erf(a) for 0 <= a <= 1. */
VMPK_INLINE double erfSmall(double a) {
  double z = a * a;
  return a * POLYNOMIAL64(z, 0x1.20dd750429b6dp+0, -0x1.812746b0379e7p-2, 0x1.ce2f21a042bdep-4, -0x1.b82ce312889c2p-6,
                          0x1.565bcd0e65192p-8, -0x1.c02db3fef0138p-11, 0x1.f9a326c2d8334p-14, -0x1.f4d25629fda1ap-17,
                          0x1.b9e6518c9ef39p-20, -0x1.5f6d9caf405d9p-23, 0x1.fc43ef5c33976p-27, -0x1.4e63568413ffcp-30,
                          0x1.7f17058ed3417p-34, -0x1.29e10ba4be90ep-38);
}

/* erfc(a) for a >= 0.5: t * exp(-a * a + p(2 t - 1)) with t = 1 / (1 + a / 2). */
VMPK_INLINE double erfcLarge(double a) {
  a = within64(a, 0.0, 28.0);
  double t = 1.0 / (1.0 + 0.5 * a), u = 2.0 * t - 1.0;
  double p = POLYNOMIAL64(u, -0x1.57f564e956ebep-1, 0x1.5864b151b8570p-1, 0x1.83d61c5241474p-5, -0x1.802b39089a669p-5,
                          -0x1.43821ef9d8135p-7, 0x1.212cf33ed955cp-7, 0x1.cd180863d1f07p-10, -0x1.337867e796be0p-9,
                          -0x1.32b3ab53cc544p-13, 0x1.6133a0fee90c4p-11, -0x1.89278d02fc2fep-14, -0x1.6d89e7742342dp-13,
                          0x1.2b7c35413cabdp-14, 0x1.0a465f0c37fefp-15, -0x1.fa9744fc1c1c4p-16, 0x1.3c8b7dba05313p-23,
                          0x1.1ffc5be4e0f1bp-17, -0x1.8eca3cd12fc25p-19, -0x1.5fb0f6402e477p-20, 0x1.59ba14edefd8cp-20,
                          -0x1.02080725305a8p-23, -0x1.383c92dec8869p-22, 0x1.e762063ee1ebdp-24, 0x1.00897a607097bp-25,
                          -0x1.581fae834a823p-26);
  vmpk_pair square = exactProduct(a, a), exponent = exactSum(-square.high, p);
  return t * expShifted(exponent.high, exponent.low - square.low, 0.0);
}

/* 2 ULP. */
VMPK_MATH double vmpk_erf_f64(double x) {
  double a = absolute64(x);
  return withSign64(select64(a < 1.0, erfSmall(a), 1.0 - erfcLarge(a)), x);
}

/* 5 ULP. */
VMPK_MATH double vmpk_erfc_f64(double x) {
  double a = absolute64(x), large = erfcLarge(a);
  double outer = select64(x < 0.0, 2.0 - large, large);
  return select64(a < 0.5, 1.0 - withSign64(erfSmall(within64(a, 0.0, 1.0)), x), outer);
}
