/* Conversions between 64-bit integers and floats on 32-bit machines, and between half precisions and floats. */
#include "support.h"

VMPK_INLINE double fromUnsigned(uint64_t n) {
  // Both terms are exact, so the sum is rounded once.
  return (double)(uint32_t)(n >> 32) * 0x1p32 + (double)(uint32_t)n;
}

VMPK_INLINE float fromUnsigned32(uint64_t n) {
  // A double must not round first: of the bits that do not fit, keep whether any is set.
  if (n >> 53)
    n = (n & ~(uint64_t)0x7ff) | (n & 0x7ff ? 0x800 : 0);
  return (float)fromUnsigned(n);
}

VMPK_INLINE uint64_t magnitude(int64_t n) { return n < 0 ? 0 - (uint64_t)n : (uint64_t)n; }

VMPK_INLINE uint64_t toUnsigned(double x) {
  uint32_t high = (uint32_t)(x * 0x1p-32);
  return (uint64_t)high << 32 | (uint32_t)(x - (double)high * 0x1p32);
}

VMPK_INLINE int64_t toSigned(double x) { return x < 0 ? (int64_t)(0 - toUnsigned(-x)) : (int64_t)toUnsigned(x); }

VMPK_SUPPORT(double, __floatundidf, uint64_t n) { return fromUnsigned(n); }
VMPK_SUPPORT(float, __floatundisf, uint64_t n) { return fromUnsigned32(n); }
VMPK_SUPPORT(double, __floatdidf, int64_t n) {
  return n < 0 ? -fromUnsigned(magnitude(n)) : fromUnsigned(magnitude(n));
}
VMPK_SUPPORT(float, __floatdisf, int64_t n) {
  return n < 0 ? -fromUnsigned32(magnitude(n)) : fromUnsigned32(magnitude(n));
}
VMPK_SUPPORT(uint64_t, __fixunsdfdi, double x) { return toUnsigned(x); }
VMPK_SUPPORT(uint64_t, __fixunssfdi, float x) { return toUnsigned((double)x); }
VMPK_SUPPORT(int64_t, __fixdfdi, double x) { return toSigned(x); }
VMPK_SUPPORT(int64_t, __fixsfdi, float x) { return toSigned((double)x); }

/* ---- Half precision ---- */

/* Where LLVM has a register for a half, the calling convention uses it; elsewhere the bits travel in an integer. */
#if defined(__x86_64__) || defined(__i386__) || defined(__aarch64__)
typedef _Float16 vmpk_half;
typedef __bf16 vmpk_brain;
#else
typedef uint16_t vmpk_half;
typedef uint16_t vmpk_brain;
#endif
VMPK_INLINE vmpk_half half(uint32_t bits) { return __builtin_bit_cast(vmpk_half, (uint16_t)bits); }
VMPK_INLINE vmpk_brain brain(uint32_t bits) { return __builtin_bit_cast(vmpk_brain, (uint16_t)bits); }

VMPK_INLINE float widen(uint32_t bits) {
  uint32_t sign = (bits & 0x8000u) << 16, rest = bits & 0x7fffu;
  if (rest >= 0x7c00u) // infinite or NaN, which becomes quiet
    return floatOf(sign | 0x7f800000u | (rest & 0x3ffu ? 0x400000u | (rest & 0x3ffu) << 13 : 0));
  if (rest < 0x400u)
    return withSign32((float)(int32_t)rest * 0x1p-24f, floatOf(sign));
  return floatOf(sign | ((rest << 13) + ((127u - 15u) << 23)));
}

/* m * 2^-shift rounded to nearest even; below: whether anything was cut off before. */
VMPK_INLINE uint32_t roundShift(uint64_t m, int shift) {
  uint64_t kept = m >> shift, rest = m & (((uint64_t)1 << shift) - 1), tie = (uint64_t)1 << (shift - 1);
  return (uint32_t)(kept + (rest > tie || (rest == tie && (kept & 1))));
}

/* A double's bits to half precision, rounded once. */
VMPK_INLINE uint32_t narrow(double x) {
  uint64_t bits = bitsOf64(x), fraction = bits & 0xfffffffffffffu;
  uint32_t sign = (uint32_t)(bits >> 48) & 0x8000u;
  int exponent = (int)(bits >> 52 & 0x7ff) - 1023;
  if (exponent == 1024)
    return sign | 0x7c00u | (fraction ? 0x200u | (uint32_t)(fraction >> 42) : 0);
  if (exponent > 15)
    return sign | 0x7c00u;
  if (exponent >= -14) // the carry moves into the exponent, up to infinity
    return sign | (roundShift(fraction, 42) + ((uint32_t)(exponent + 15) << 10));
  if (exponent < -25)
    return sign;
  return sign | roundShift(fraction | 0x10000000000000u, 28 - exponent);
}

VMPK_INLINE uint32_t narrowBrain(float x) {
  uint32_t bits = bitsOf32(x);
  if ((bits & 0x7fffffffu) > 0x7f800000u)
    return bits >> 16 | 0x40u;
  return (bits + 0x7fffu + (bits >> 16 & 1)) >> 16;
}

VMPK_SUPPORT(float, __extendhfsf2, vmpk_half x) { return widen(__builtin_bit_cast(uint16_t, x)); }
VMPK_SUPPORT(double, __extendhfdf2, vmpk_half x) { return (double)widen(__builtin_bit_cast(uint16_t, x)); }
VMPK_SUPPORT(vmpk_half, __truncsfhf2, float x) { return half(narrow((double)x)); }
VMPK_SUPPORT(vmpk_half, __truncdfhf2, double x) { return half(narrow(x)); }
VMPK_SUPPORT(vmpk_brain, __truncsfbf2, float x) { return brain(narrowBrain(x)); }
VMPK_SUPPORT(vmpk_brain, __truncdfbf2, double x) {
  // To a float by rounding to odd, so that the second rounding sees what the first left out.
  float near = (float)x;
  double back = (double)near;
  uint32_t bits = bitsOf32(near);
  if (back != x && back == back && absolute64(x) <= 0x1.fffffep127) {
    bits -= absolute64(back) > absolute64(x);
    bits |= 1;
  }
  return brain(narrowBrain(floatOf(bits)));
}
VMPK_SUPPORT(float, __gnu_h2f_ieee, uint16_t x) { return widen(x); }
VMPK_SUPPORT(uint16_t, __gnu_f2h_ieee, float x) { return (uint16_t)narrow((double)x); }

#ifdef __arm__
VMPK_AEABI VMPK_SUPPORT(float, __aeabi_h2f, uint16_t x) { return widen(x); }
VMPK_AEABI VMPK_SUPPORT(uint16_t, __aeabi_f2h, float x) { return (uint16_t)narrow((double)x); }
VMPK_AEABI VMPK_SUPPORT(uint16_t, __aeabi_d2h, double x) { return (uint16_t)narrow(x); }
VMPK_AEABI VMPK_SUPPORT(float, __aeabi_l2f, int64_t n) {
  return n < 0 ? -fromUnsigned32(magnitude(n)) : fromUnsigned32(magnitude(n));
}
VMPK_AEABI VMPK_SUPPORT(double, __aeabi_l2d, int64_t n) {
  return n < 0 ? -fromUnsigned(magnitude(n)) : fromUnsigned(magnitude(n));
}
VMPK_AEABI VMPK_SUPPORT(float, __aeabi_ul2f, uint64_t n) { return fromUnsigned32(n); }
VMPK_AEABI VMPK_SUPPORT(double, __aeabi_ul2d, uint64_t n) { return fromUnsigned(n); }
VMPK_AEABI VMPK_SUPPORT(int64_t, __aeabi_f2lz, float x) { return toSigned((double)x); }
VMPK_AEABI VMPK_SUPPORT(int64_t, __aeabi_d2lz, double x) { return toSigned(x); }
VMPK_AEABI VMPK_SUPPORT(uint64_t, __aeabi_f2ulz, float x) { return toUnsigned((double)x); }
VMPK_AEABI VMPK_SUPPORT(uint64_t, __aeabi_d2ulz, double x) { return toUnsigned(x); }
#endif
