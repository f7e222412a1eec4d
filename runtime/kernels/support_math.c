/* The C library's roundings, remainders and the like, for machines that have no instruction for them. */
#include "remainder.h"
#include "support.h"

/* Adding and taking away 2^(mantissa bits) rounds to an integer, ties to even. Larger values are integers already. */
#define VMPK_ROUNDINGS(type, F, absolute, withSign, select, LIMIT)                                                     \
  VMPK_INLINE type nearest##F(type x) {                                                                                \
    type a = absolute(x);                                                                                              \
    return select(a < LIMIT, withSign((a + LIMIT) - LIMIT, x), x);                                                     \
  }                                                                                                                    \
  VMPK_INLINE type down##F(type x) {                                                                                   \
    type near = nearest##F(x);                                                                                         \
    return select(near > x, withSign(near - 1, x), near);                                                              \
  }                                                                                                                    \
  VMPK_INLINE type up##F(type x) {                                                                                     \
    type near = nearest##F(x);                                                                                         \
    return select(near < x, withSign(near + 1, x), near);                                                              \
  }                                                                                                                    \
  VMPK_INLINE type away##F(type x) {                                                                                   \
    type a = absolute(x), below = down##F(a);                                                                          \
    return withSign(below + (a - below >= (type)0.5), x);                                                              \
  }                                                                                                                    \
  VMPK_SUPPORT(type, rint##F, type x) { return nearest##F(x); }                                                        \
  VMPK_SUPPORT(type, nearbyint##F, type x) { return nearest##F(x); }                                                   \
  VMPK_SUPPORT(type, roundeven##F, type x) { return nearest##F(x); }                                                   \
  VMPK_SUPPORT(type, floor##F, type x) { return down##F(x); }                                                          \
  VMPK_SUPPORT(type, ceil##F, type x) { return up##F(x); }                                                             \
  VMPK_SUPPORT(type, trunc##F, type x) { return withSign(down##F(absolute(x)), x); }                                   \
  VMPK_SUPPORT(type, round##F, type x) { return select(absolute(x) < LIMIT, away##F(x), x); }

VMPK_ROUNDINGS(float, f, absolute32, withSign32, select32, 0x1p23f)
VMPK_ROUNDINGS(double, , absolute64, withSign64, select64, 0x1p52)

VMPK_SUPPORT(float, fmodf, float x, float y) { return remainder32(x, y); }
VMPK_SUPPORT(double, fmod, double x, double y) { return remainder64(x, y); }

/* fmin: a NaN loses. fminimum: a NaN wins. Both order -0 before +0. */
#define VMPK_EXTREMES(type, F, bits, INTEGER)                                                                          \
  VMPK_INLINE type lesser##F(type x, type y) { return x < y || (x == y && (INTEGER)bits(x) < 0) ? x : y; }             \
  VMPK_INLINE type greater##F(type x, type y) { return x > y || (x == y && (INTEGER)bits(x) >= 0) ? x : y; }           \
  VMPK_SUPPORT(type, fmin##F, type x, type y) { return x != x ? y : y != y ? x : lesser##F(x, y); }                    \
  VMPK_SUPPORT(type, fmax##F, type x, type y) { return x != x ? y : y != y ? x : greater##F(x, y); }                   \
  VMPK_SUPPORT(type, fminimum##F, type x, type y) { return x != x || y != y ? x + y : lesser##F(x, y); }               \
  VMPK_SUPPORT(type, fmaximum##F, type x, type y) { return x != x || y != y ? x + y : greater##F(x, y); }              \
  VMPK_SUPPORT(type, fminimum_num##F, type x, type y) { return x != x ? y : y != y ? x : lesser##F(x, y); }            \
  VMPK_SUPPORT(type, fmaximum_num##F, type x, type y) { return x != x ? y : y != y ? x : greater##F(x, y); }

VMPK_EXTREMES(float, f, bitsOf32, int32_t)
VMPK_EXTREMES(double, , bitsOf64, int64_t)

/* In three steps, of which only the last can round. */
VMPK_SUPPORT(double, ldexp, double x, int n) {
  n = n < -3000 ? -3000 : n > 3000 ? 3000 : n;
  for (; n > 1000; n -= 1000)
    x *= 0x1p1000;
  // A subnormal must not be rounded twice: 2^-900 keeps any normal number of use normal.
  for (; n < -900 && absolute64(x) >= 0x1p-100; n += 900)
    x *= 0x1p-900;
  for (; n < -1000; n += 1000)
    x *= 0x1p-1000;
  return x * power64(n);
}
VMPK_SUPPORT(float, ldexpf, float x, int n) {
  // Exact as a double, then rounded once.
  n = n < -400 ? -400 : n > 400 ? 400 : n;
  return (float)((double)x * power64(n));
}

VMPK_SUPPORT(float, __powisf2, float x, int n) {
  float result = 1.0f;
  for (uint32_t left = n < 0 ? 0 - (uint32_t)n : (uint32_t)n; left; left >>= 1, x *= x)
    result = left & 1 ? result * x : result;
  return n < 0 ? 1.0f / result : result;
}
VMPK_SUPPORT(double, __powidf2, double x, int n) {
  double result = 1.0;
  for (uint32_t left = n < 0 ? 0 - (uint32_t)n : (uint32_t)n; left; left >>= 1, x *= x)
    result = left & 1 ? result * x : result;
  return n < 0 ? 1.0 / result : result;
}

/* The product is exact in a double; the sum is rounded to odd, so that rounding to a float is the only one that counts.
 */
VMPK_SUPPORT(float, fmaf, float x, float y, float z) {
  double product = (double)x * (double)y;
  double sum = product + (double)z, part = sum - product;
  double lost = (product - (sum - part)) + ((double)z - part);
  uint64_t bits = bitsOf64(sum);
  if (lost != 0.0 && !(bits & 1) && absolute64(sum) < INFINITY_F64)
    bits += (lost > 0.0) == (sum > 0.0) ? 1 : (uint64_t)-1;
  return (float)doubleOf(bits);
}

/* ---- fma in integers: the exact sum in 128 bits, with the lowest bit standing for all below it ---- */

typedef struct {
  uint64_t high, low;
} vmpk_wide;

/* |x| = mantissa * 2^exponent. */
VMPK_INLINE uint64_t mantissaOf(double x, int *exponent) {
  uint64_t bits = bitsOf64(x) & 0x7fffffffffffffffu;
  *exponent = (int)(bits >> 52) - 1075;
  if (*exponent > -1075)
    return (bits & 0xfffffffffffffu) | 0x10000000000000u;
  *exponent = -1074;
  return bits;
}

static vmpk_wide multiplyWide(uint64_t a, uint64_t b) {
  uint64_t a0 = (uint32_t)a, a1 = a >> 32, b0 = (uint32_t)b, b1 = b >> 32;
  uint64_t low = a0 * b0, middle = a1 * b0 + (low >> 32), other = a0 * b1 + (uint32_t)middle;
  return (vmpk_wide){a1 * b1 + (middle >> 32) + (other >> 32), other << 32 | (uint32_t)low};
}

static vmpk_wide shiftLeft(vmpk_wide a, int by) {
  if (by >= 64)
    return (vmpk_wide){a.low << (by - 64), 0};
  return by ? (vmpk_wide){a.high << by | a.low >> (64 - by), a.low << by} : a;
}

static vmpk_wide shiftRightSticky(vmpk_wide a, int by) {
  if (by >= 128)
    return (vmpk_wide){0, (a.high | a.low) != 0};
  if (by >= 64) {
    uint64_t cut = a.low | (by > 64 ? a.high << (128 - by) : 0);
    return (vmpk_wide){0, a.high >> (by - 64) | (cut != 0)};
  }
  if (!by)
    return a;
  return (vmpk_wide){a.high >> by, (a.low >> by | a.high << (64 - by)) | (a.low << (64 - by) != 0)};
}

/* (sign) m * 2^exponent to a double, m's highest bit set. */
static double roundWide(vmpk_wide m, int exponent, uint64_t sign) {
  int top = exponent + 127; // the highest bit is worth 2^top
  if (top > 1023)
    return doubleOf(sign | 0x7ff0000000000000u);
  int biased = top + 1023;
  if (biased < 1) {
    m = shiftRightSticky(m, 1 - biased);
    biased = 1;
  }
  uint64_t kept = m.high >> 11, rest = m.high & 0x7ff;
  uint64_t up = rest > 0x400 || (rest == 0x400 && (m.low || (kept & 1)));
  return doubleOf(sign | (((uint64_t)(biased - 1) << 52) + kept + up));
}

VMPK_SUPPORT(double, fma, double x, double y, double z) {
  if (!(absolute64(x) < INFINITY_F64) || !(absolute64(y) < INFINITY_F64) || x == 0.0 || y == 0.0)
    return x * y + z;
  if (!(absolute64(z) < INFINITY_F64))
    return z + z; // also where the product overflows
  int x_exponent, y_exponent, z_exponent;
  uint64_t x_mantissa = mantissaOf(x, &x_exponent), y_mantissa = mantissaOf(y, &y_exponent);
  vmpk_wide addend = {0, mantissaOf(z, &z_exponent)};
  // The product has at most 106 bits: 20 more leave one for the carry.
  vmpk_wide product = shiftLeft(multiplyWide(x_mantissa, y_mantissa), 20);
  int exponent = x_exponent + y_exponent - 20, shift = z_exponent - exponent;
  if (shift > 73) {
    product = shiftRightSticky(product, shift - 73);
    exponent += shift - 73;
    shift = 73;
  }
  addend = shift < 0 ? shiftRightSticky(addend, -shift) : shiftLeft(addend, shift);
  uint64_t sign = (bitsOf64(x) ^ bitsOf64(y)) & 0x8000000000000000u;
  vmpk_wide sum;
  if (((bitsOf64(z) ^ sign) & 0x8000000000000000u) == 0) {
    sum.low = product.low + addend.low;
    sum.high = product.high + addend.high + (sum.low < product.low);
  } else {
    int less = product.high < addend.high || (product.high == addend.high && product.low < addend.low);
    vmpk_wide a = less ? addend : product, b = less ? product : addend;
    sign ^= less ? 0x8000000000000000u : 0;
    sum.low = a.low - b.low;
    sum.high = a.high - b.high - (a.low < b.low);
  }
  if (!(sum.high | sum.low))
    return z == 0.0 ? x * y + z : 0.0;
  int zeros = sum.high ? __builtin_clzll(sum.high) : 64 + __builtin_clzll(sum.low);
  return roundWide(shiftLeft(sum, zeros), exponent - zeros, sign);
}
