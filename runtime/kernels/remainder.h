/* C's fmod, exact: for the kernels and for the support function of that name. */
#ifndef VMPK_KERNELS_REMAINDER_H
#define VMPK_KERNELS_REMAINDER_H

#include "math.h"

/* A double holds quotients below 2^29 times y without rounding, so the remainder shrinks by that much a step. */
VMPK_INLINE float remainder32(float x, float y) {
  double left = (double)absolute32(x), by = (double)absolute32(y);
  if (!(left < INFINITY_F64) || !(by > 0.0))
    return NAN_F32;
  while (left >= by) {
    double step = by;
    while (left >= step * 0x1p28)
      step *= 0x1p28;
    double quotient = left / step;
    quotient = (double)(int32_t)quotient;
    left -= quotient * step;
    left = left < 0.0 ? left + step : left;
  }
  return withSign32((float)left, x);
}

/* Long division of the mantissas, eleven bits a step. */
VMPK_INLINE double remainder64(double x, double y) {
  const uint64_t sign = bitsOf64(x) & 0x8000000000000000u, hidden = 0x10000000000000u;
  double a = absolute64(x), b = absolute64(y);
  if (!(a < INFINITY_F64) || !(b > 0.0))
    return NAN_F64;
  if (a < b)
    return x;
  int64_t a_exponent = (int64_t)(bitsOf64(a) >> 52), b_exponent = (int64_t)(bitsOf64(b) >> 52);
  uint64_t rest = (bitsOf64(a) & (hidden - 1)) | (a_exponent ? hidden : 0);
  uint64_t by = (bitsOf64(b) & (hidden - 1)) | (b_exponent ? hidden : 0);
  a_exponent += !a_exponent;
  b_exponent += !b_exponent;
  rest %= by;
  for (int64_t left = a_exponent - b_exponent; left > 0 && rest; left -= 11)
    rest = (rest << (left < 11 ? left : 11)) % by;
  if (!rest)
    return doubleOf(sign);
  while (!(rest & hidden) && b_exponent > 1) {
    rest <<= 1;
    --b_exponent;
  }
  uint64_t exponent = rest & hidden ? (uint64_t)b_exponent << 52 : 0;
  return doubleOf(sign | exponent | (rest & (hidden - 1)));
}

#endif /* VMPK_KERNELS_REMAINDER_H */
