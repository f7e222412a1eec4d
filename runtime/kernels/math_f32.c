/* Scalar math in f32. The functions that networks use most stay in f32; the others round a result in f64, which makes
 * them exact to half a unit and a bit. Bounds are in units in the last place (ULP), the same with and without fused
 * multiply-add. */
#include "remainder.h"

/* e^r = 1 + r + r * r * q(r) for |r| <= ln(2) / 2. */
VMPK_INLINE float expPolynomial(float r) {
  float q = POLYNOMIAL32(r, 0x1.fffffcp-2f, 0x1.555492p-3f, 0x1.5558f2p-5f, 0x1.123a0cp-7f, 0x1.6a23f2p-10f);
  return mad32(r * r, q, r) + 1.0f;
}

/* 1 ULP. */
VMPK_MATH float vmpk_exp_f32(float x) {
  x = within32(x, -104.0f, 89.0f);
  float n = (x * 0x1.715476p0f + ROUND_F32) - ROUND_F32;
  float r = mad32(n, -0x1.62e4p-1f, x);
  r = mad32(n, -0x1.7f7d1cp-20f, r);
  return scale32(expPolynomial(r), n);
}

/* 1.1 ULP. */
VMPK_MATH float vmpk_exp2_f32(float x) {
  x = within32(x, -151.0f, 129.0f);
  float n = (x + ROUND_F32) - ROUND_F32;
  float r = x - n;
  float p = POLYNOMIAL32(r, 0x1.62e430p-1f, 0x1.ebfbe0p-3f, 0x1.c6b056p-5f, 0x1.3b2a1cp-7f, 0x1.5dc052p-10f,
                         0x1.443f98p-13f, 0x1.c0481cp-17f);
  return scale32(mad32(r, p, 1.0f), n);
}

/* 1 ULP. */
VMPK_MATH float vmpk_log_f32(float x) {
  int tiny = x < 0x1p-126f;
  float scaled = select32(tiny, x * 0x1p23f, x);
  // x = m * 2^e with m in [sqrt(1/2), sqrt(2)).
  uint32_t shifted = bitsOf32(scaled) + (0x3f800000u - 0x3f3504f3u);
  float e = floatOf((shifted >> 23) | 0x4b000000u) - (0x1p23f + 127.0f);
  e = e - select32(tiny, 23.0f, 0.0f);
  float f = floatOf((shifted & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
  float p = POLYNOMIAL32(f, 0x1.555548p-2f, -0x1.000006p-2f, 0x1.99a4b6p-3f, -0x1.555c52p-3f, 0x1.233766p-3f,
                         -0x1.fc214ap-4f, 0x1.e6efd0p-4f, -0x1.de4018p-4f, 0x1.145db2p-4f);
  float square = f * f;
  float y = mad32(square * f, p, e * -0x1.bd0106p-13f);
  y = mad32(square, -0.5f, y);
  y = mad32(e, 0x1.63p-1f, f + y);
  y = select32(x < INFINITY_F32, y, INFINITY_F32);
  return select32(x > 0.0f, y, select32(x == 0.0f, -INFINITY_F32, NAN_F32));
}

/* 2 ULP. */
VMPK_MATH float vmpk_tanh_f32(float x) {
  float a = absolute32(x), z = a * a;
  float small = mad32(a * z,
                      POLYNOMIAL32(z, -0x1.555554p-2f, 0x1.11109ep-3f, -0x1.b9fa8ap-5f, 0x1.6418d6p-6f, -0x1.0ee552p-7f,
                                   0x1.246ddep-9f),
                      a);
  // 1 - 2 / (e^2a + 1); from 10 on that is 1.
  float t = within32(a + a, 0.0f, 20.0f);
  float n = (t * 0x1.715476p0f + ROUND_F32) - ROUND_F32;
  float r = mad32(n, -0x1.7f7d1cp-20f, mad32(n, -0x1.62e4p-1f, t));
  float large = 1.0f - 2.0f / (expPolynomial(r) * power32(n) + 1.0f);
  return withSign32(select32(a < 0.6f, small, large), x);
}

/* 2 ULP. */
VMPK_MATH float vmpk_erf_f32(float x) {
  float a = absolute32(x), z = a * a;
  float small = mad32(a,
                      POLYNOMIAL32(z, 0x1.06eba8p-3f, -0x1.812744p-2f, 0x1.ce2e34p-4f, -0x1.b8122ap-6f, 0x1.54ea6ap-8f,
                                   -0x1.ab6ebep-11f, 0x1.60bce8p-14f),
                      a);
  // 1 - erfc(a); from 4 on that is 1.
  float t = within32(a, 0.0f, 4.0f);
  float p = t * POLYNOMIAL32(t, 0x1.20e25ap+0f, 0x1.45b63ep-1f, 0x1.aa1b36p-4f, -0x1.593e7ep-6f, 0x1.b26964p-10f,
                             0x1.31d7f0p-11f, -0x1.f2ac76p-13f, 0x1.3abb8ap-15f, -0x1.3cb6e6p-19f);
  float n = (p * -0x1.715476p0f + ROUND_F32) - ROUND_F32;
  float r = mad32(n, -0x1.7f7d1cp-20f, mad32(n, -0x1.62e4p-1f, -p));
  float large = 1.0f - expPolynomial(r) * power32(n);
  return withSign32(select32(a < 0.92f, small, large), x);
}

/* 1.5 ULP. */
VMPK_MATH float vmpk_rsqrt_f32(float x) { return 1.0f / __builtin_sqrtf(x); }

/* 1 ULP each: 0.5 and what the conversion adds. */
#define VMPK_BY_F64(name)                                                                                              \
  VMPK_MATH float vmpk_##name##_f32(float x) { return (float)vmpk_##name##_f64((double)x); }
VMPK_BY_F64(expm1)
VMPK_BY_F64(log2)
VMPK_BY_F64(log10)
VMPK_BY_F64(log1p)
VMPK_BY_F64(sin)
VMPK_BY_F64(cos)
VMPK_BY_F64(tan)
VMPK_BY_F64(asin)
VMPK_BY_F64(acos)
VMPK_BY_F64(atan)
VMPK_BY_F64(sinh)
VMPK_BY_F64(cosh)
VMPK_BY_F64(asinh)
VMPK_BY_F64(acosh)
VMPK_BY_F64(atanh)
VMPK_BY_F64(erfc)
VMPK_BY_F64(cbrt)

VMPK_MATH float vmpk_atan2_f32(float y, float x) { return (float)vmpk_atan2_f64((double)y, (double)x); }
VMPK_MATH float vmpk_pow_f32(float x, float y) { return (float)vmpk_pow_f64((double)x, (double)y); }

/* Exact. */
float vmpk_fmod_f32(float x, float y) { return remainder32(x, y); }
