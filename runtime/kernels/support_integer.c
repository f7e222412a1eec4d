/* Integer multiplication, division and shifts beyond a register's width. */
#include "support.h"

typedef struct {
  uint32_t quotient, rest;
} vmpk_division32;
typedef struct {
  uint64_t quotient, rest;
} vmpk_division64;

/* A zero divisor is undefined in the language; here the quotient is all ones. */
VMPK_INLINE vmpk_division32 divide32(uint32_t n, uint32_t d) {
#ifdef __arm__ /* armv7 has no division */
  vmpk_division32 result = {0, n};
  if (!d || n < d) {
    result.quotient = d ? 0 : ~(uint32_t)0;
    return result;
  }
  for (int shift = __builtin_clz(d) - __builtin_clz(n); shift >= 0; --shift) {
    uint32_t take = result.rest >= d << shift;
    result.rest -= take ? d << shift : 0;
    result.quotient = result.quotient << 1 | take;
  }
  return result;
#else
  return (vmpk_division32){n / d, n % d};
#endif
}

VMPK_INLINE int leadingZeros(uint64_t n) {
  return n >> 32 ? __builtin_clz((uint32_t)(n >> 32)) : 32 + __builtin_clz((uint32_t)n);
}

static vmpk_division64 divide64(uint64_t n, uint64_t d) {
  if (!((n | d) >> 32)) {
    vmpk_division32 small = divide32((uint32_t)n, (uint32_t)d);
    return (vmpk_division64){small.quotient, small.rest};
  }
  vmpk_division64 result = {0, n};
  if (!d || n < d) {
    result.quotient = d ? 0 : ~(uint64_t)0;
    return result;
  }
  int shift = leadingZeros(d) - leadingZeros(n);
  for (uint64_t by = d << shift; shift >= 0; --shift, by >>= 1) {
    uint64_t take = result.rest >= by;
    result.rest -= take ? by : 0;
    result.quotient = result.quotient << 1 | take;
  }
  return result;
}

VMPK_INLINE uint64_t magnitude(int64_t n) { return n < 0 ? 0 - (uint64_t)n : (uint64_t)n; }
VMPK_INLINE int64_t signedIf(int negative, uint64_t n) { return (int64_t)(negative ? 0 - n : n); }

VMPK_INLINE vmpk_division64 divideSigned64(int64_t n, int64_t d) {
  vmpk_division64 result = divide64(magnitude(n), magnitude(d));
  result.quotient = (uint64_t)signedIf((n < 0) != (d < 0), result.quotient);
  result.rest = (uint64_t)signedIf(n < 0, result.rest);
  return result;
}

VMPK_SUPPORT(uint64_t, __udivdi3, uint64_t n, uint64_t d) { return divide64(n, d).quotient; }
VMPK_SUPPORT(uint64_t, __umoddi3, uint64_t n, uint64_t d) { return divide64(n, d).rest; }
VMPK_SUPPORT(int64_t, __divdi3, int64_t n, int64_t d) { return (int64_t)divideSigned64(n, d).quotient; }
VMPK_SUPPORT(int64_t, __moddi3, int64_t n, int64_t d) { return (int64_t)divideSigned64(n, d).rest; }
VMPK_SUPPORT(uint64_t, __udivmoddi4, uint64_t n, uint64_t d, uint64_t *rest) {
  vmpk_division64 result = divide64(n, d);
  if (rest)
    *rest = result.rest;
  return result.quotient;
}
VMPK_SUPPORT(int64_t, __divmoddi4, int64_t n, int64_t d, int64_t *rest) {
  vmpk_division64 result = divideSigned64(n, d);
  *rest = (int64_t)result.rest;
  return (int64_t)result.quotient;
}

/* The product of two words, in two words. */
VMPK_INLINE uint64_t multiplyWords(uint32_t a, uint32_t b) { return (uint64_t)a * b; }

VMPK_SUPPORT(uint64_t, __muldi3, uint64_t a, uint64_t b) {
  uint32_t a_low = (uint32_t)a, b_low = (uint32_t)b;
  uint32_t cross = (uint32_t)(a >> 32) * b_low + a_low * (uint32_t)(b >> 32);
  return multiplyWords(a_low, b_low) + ((uint64_t)cross << 32);
}

VMPK_INLINE uint64_t joined(uint32_t low, uint32_t high) { return (uint64_t)high << 32 | low; }
VMPK_SUPPORT(uint64_t, __ashldi3, uint64_t a, int by) {
  uint32_t low = (uint32_t)a, high = (uint32_t)(a >> 32);
  if (by & 32)
    return joined(0, low << (by & 31));
  return by ? joined(low << by, high << by | low >> (32 - by)) : a;
}
VMPK_SUPPORT(uint64_t, __lshrdi3, uint64_t a, int by) {
  uint32_t low = (uint32_t)a, high = (uint32_t)(a >> 32);
  if (by & 32)
    return joined(high >> (by & 31), 0);
  return by ? joined(low >> by | high << (32 - by), high >> by) : a;
}
VMPK_SUPPORT(int64_t, __ashrdi3, int64_t a, int by) {
  uint32_t low = (uint32_t)a;
  int32_t high = (int32_t)(a >> 32);
  if (by & 32)
    return (int64_t)joined((uint32_t)(high >> (by & 31)), (uint32_t)(high >> 31));
  return by ? (int64_t)joined(low >> by | (uint32_t)high << (32 - by), (uint32_t)(high >> by)) : a;
}

#ifdef __SIZEOF_INT128__
__extension__ typedef unsigned __int128 vmpk_uint128;
VMPK_SUPPORT(vmpk_uint128, __multi3, vmpk_uint128 a, vmpk_uint128 b) {
  uint64_t a_low = (uint64_t)a, b_low = (uint64_t)b;
  uint32_t a0 = (uint32_t)a_low, a1 = (uint32_t)(a_low >> 32), b0 = (uint32_t)b_low, b1 = (uint32_t)(b_low >> 32);
  uint64_t low = multiplyWords(a0, b0), middle = multiplyWords(a1, b0) + (low >> 32);
  uint64_t other = multiplyWords(a0, b1) + (uint32_t)middle;
  uint64_t high = multiplyWords(a1, b1) + (middle >> 32) + (other >> 32);
  high += (uint64_t)(a >> 64) * b_low + a_low * (uint64_t)(b >> 64);
  return (vmpk_uint128)high << 64 | (other << 32 | (uint32_t)low);
}
#endif

#ifdef __arm__
/* Quotient and rest come back in r0 and r1, or r0:r1 and r2:r3: as one wide value each. */
typedef uint64_t vmpk_two64 __attribute__((vector_size(16)));

VMPK_INLINE vmpk_division32 divideSigned32(int32_t n, int32_t d) {
  vmpk_division32 result = divide32((uint32_t)magnitude(n), (uint32_t)magnitude(d));
  result.quotient = (n < 0) != (d < 0) ? 0 - result.quotient : result.quotient;
  result.rest = n < 0 ? 0 - result.rest : result.rest;
  return result;
}

VMPK_AEABI VMPK_SUPPORT(uint32_t, __aeabi_uidiv, uint32_t n, uint32_t d) { return divide32(n, d).quotient; }
VMPK_AEABI VMPK_SUPPORT(int32_t, __aeabi_idiv, int32_t n, int32_t d) { return (int32_t)divideSigned32(n, d).quotient; }
VMPK_AEABI VMPK_SUPPORT(uint64_t, __aeabi_uidivmod, uint32_t n, uint32_t d) {
  vmpk_division32 result = divide32(n, d);
  return joined(result.quotient, result.rest);
}
VMPK_AEABI VMPK_SUPPORT(uint64_t, __aeabi_idivmod, int32_t n, int32_t d) {
  vmpk_division32 result = divideSigned32(n, d);
  return joined(result.quotient, result.rest);
}
VMPK_AEABI VMPK_SUPPORT(vmpk_two64, __aeabi_uldivmod, uint64_t n, uint64_t d) {
  vmpk_division64 result = divide64(n, d);
  return (vmpk_two64){result.quotient, result.rest};
}
VMPK_AEABI VMPK_SUPPORT(vmpk_two64, __aeabi_ldivmod, int64_t n, int64_t d) {
  vmpk_division64 result = divideSigned64(n, d);
  return (vmpk_two64){result.quotient, result.rest};
}
VMPK_AEABI VMPK_SUPPORT(uint64_t, __aeabi_lmul, uint64_t a, uint64_t b) { return __muldi3(a, b); }
VMPK_AEABI VMPK_SUPPORT(uint64_t, __aeabi_llsl, uint64_t a, int by) { return __ashldi3(a, by); }
VMPK_AEABI VMPK_SUPPORT(uint64_t, __aeabi_llsr, uint64_t a, int by) { return __lshrdi3(a, by); }
VMPK_AEABI VMPK_SUPPORT(int64_t, __aeabi_lasr, int64_t a, int by) { return __ashrdi3(a, by); }
#endif
