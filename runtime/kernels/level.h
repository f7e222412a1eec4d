/* What one ISA level looks like to the kernels: vector width, fused multiply-add, and the shape of the register tile.
 *
 * Chosen by the compiler's own feature macros, so that the same sources make every level; VMPK_GENERIC asks for the
 * scalar reference. A tile is ROWS x (VECTORS * WIDTH) accumulators:
 *
 *      level            WIDTH  VECTORS  ROWS   registers
 *      x86-64-v4          16      2      12    24 of 32 zmm, two panels side by side
 *      x86-64-v3           8      2       6    12 of 16 ymm
 *      x86-64-v2           4      2       5    10 of 16 xmm: a product needs a register of its own without FMA
 *      x86 (32 bit)        4      2       2     4 of  8 xmm
 *      armv8.0             4      4       5    20 of 32, and 5 that hold four k steps of each row of a
 *      armv7               4      2       4     8 of 16
 *      wasm simd128        4      2       4     8: engines spill beyond nine
 *      scalar              1      4       2     8 */
#ifndef VMPK_KERNELS_LEVEL_H
#define VMPK_KERNELS_LEVEL_H

#include "kernels.h"

/* Indices inside a kernel are as wide as a pointer: 64-bit arithmetic is slow on 32-bit machines. */
typedef intptr_t vmpk_index;

#define VMPK_INLINE static inline __attribute__((always_inline))
#define VMPK_UNROLL _Pragma("clang loop unroll(full)")

#if defined(VMPK_GENERIC)
#define WIDTH 1
#define VECTORS 4
#define ROWS 2
#elif defined(__AVX512F__)
#define WIDTH 16
#define VECTORS 2
#define ROWS 12
#define VMPK_FMA 1
#elif defined(__AVX2__) && defined(__FMA__)
#define WIDTH 8
#define VECTORS 2
#define ROWS 6
#define VMPK_FMA 1
#elif defined(__x86_64__)
#define WIDTH 4
#define VECTORS 2
#define ROWS 5
#elif defined(__i386__)
#define WIDTH 4
#define VECTORS 2
#define ROWS 2
#elif defined(__aarch64__)
#define WIDTH 4
#define VECTORS 4
#define ROWS 5
#define VMPK_FMA 1
#define VMPK_LANES 1 /* a multiplication by a lane is free: read four k steps of a row at once */
#elif defined(__ARM_NEON)
#define WIDTH 4
#define VECTORS 2
#define ROWS 4
#elif defined(__wasm_simd128__)
#define WIDTH 4
#define VECTORS 2
#define ROWS 4
#else
#define WIDTH 1
#define VECTORS 4
#define ROWS 2
#endif

/* Columns of a tile. */
#define COLUMNS (WIDTH * VECTORS)

/* The last columns of a matrix may fill only half of a tile: then a tile half as wide and higher. */
#if COLUMNS >= VMPK_PANEL
#define NARROW_VECTORS (VECTORS / 2)
#define NARROW_ROWS (VECTORS == 4 ? 8 : 12)
#define MOST_ROWS NARROW_ROWS
#else
#define MOST_ROWS ROWS
#endif

/* Code that uses 512-bit registers has to say so, or LLVM halves the vectors where a CPU prefers 256 bits. */
#if WIDTH == 16
#define VMPK_KERNEL __attribute__((min_vector_width(512)))
#else
#define VMPK_KERNEL
#endif

#if WIDTH == 1
typedef float vmpk_vector;
typedef float vmpk_unaligned;
VMPK_INLINE vmpk_vector splat(float x) { return x; }
#else
typedef float vmpk_vector __attribute__((ext_vector_type(WIDTH)));
typedef float vmpk_unaligned __attribute__((ext_vector_type(WIDTH), aligned(4)));
VMPK_INLINE vmpk_vector splat(float x) { return (vmpk_vector)(x); }
#endif

VMPK_INLINE vmpk_vector load(const float *p) { return *(const vmpk_unaligned *)p; }
VMPK_INLINE void store(float *p, vmpk_vector v) { *(vmpk_unaligned *)p = v; }

/* a * b + c, fused where the level can; never a library call. */
VMPK_INLINE vmpk_vector multiplyAdd(vmpk_vector a, vmpk_vector b, vmpk_vector c) {
#if defined(__wasm_relaxed_simd__) && WIDTH == 4
  return __builtin_wasm_relaxed_madd_f32x4(a, b, c);
#elif defined(VMPK_FMA)
  return __builtin_elementwise_fma(a, b, c);
#else
  return a * b + c;
#endif
}

/* min(max(x, low), high), where a NaN of x stays. Comparisons become one instruction on x86 and wasm; but with relaxed
 * SIMD, LLVM takes them for relaxed_min and relaxed_max, which may lose a NaN: there it is put back. */
VMPK_INLINE vmpk_vector clamp(vmpk_vector x, vmpk_vector low, vmpk_vector high) {
#if defined(__wasm_relaxed_simd__) && WIDTH == 4
  typedef int lanes __attribute__((ext_vector_type(4)));
  vmpk_vector y = __builtin_wasm_relaxed_min_f32x4(high, __builtin_wasm_relaxed_max_f32x4(low, x));
  return (vmpk_vector)__builtin_wasm_bitselect((lanes)y, (lanes)x, x == x);
#elif defined(__aarch64__) && !defined(VMPK_GENERIC)
  return __builtin_elementwise_minimum(__builtin_elementwise_maximum(x, low), high);
#else
  x = x < low ? low : x;
  return high < x ? high : x;
#endif
}

VMPK_INLINE vmpk_index smaller(vmpk_index a, vmpk_index b) { return a < b ? a : b; }
VMPK_INLINE vmpk_index larger(vmpk_index a, vmpk_index b) { return a > b ? a : b; }

#endif /* VMPK_KERNELS_LEVEL_H */
