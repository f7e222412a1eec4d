/* 3 x 3 convolution by Winograd's minimal filtering, F(2x2, 3x3) and F(4x4, 3x3) (Lavin and Gray, "Fast Algorithms for
 * Convolutional Neural Networks", 2015, with the points 0, 1, -1, (2, -2,) infinity):
 *
 *     windows of the image --B^T d B--> matrices [position][tile][c]
 *     matrices [position] x transformed weights [position] ----> sums [position][tile][n]
 *     sums --A^T m A--> pixels, plus bias, clamped
 *
 * A block of tiles passes through all three steps while it is in the second-level cache. */
#include "tile.h"

/* Floats between the matrices of two positions beyond their size: without it, positions that lie a multiple of 4 KiB
 * apart would compete for the same lines of the first-level cache. */
#define POSITION_GAP 16

typedef struct {
  const float *x, *w, *bias;
  float *y, *in, *out; /* in, out: matrices and sums of a block */
  vmpk_index height, width, c, x_stride, pad_top, pad_left;
  vmpk_index out_width, y_stride, row_end, n;
  vmpk_index in_position, out_position; /* floats from a position to the next */
  float low, high;
} vmpk_filtering;

/* One-dimensional transforms; S: distance of the elements. */

VMPK_INLINE void transformInput(const int M, const int S, const vmpk_vector *d, vmpk_vector *t) {
  if (M == 2) {
    t[0] = d[0] - d[2 * S];
    t[S] = d[S] + d[2 * S];
    t[2 * S] = d[2 * S] - d[S];
    t[3 * S] = d[S] - d[3 * S];
    return;
  }
  const vmpk_vector minus4 = splat(-4.0f), minus5 = splat(-5.0f), four = splat(4.0f);
  vmpk_vector d0 = d[0], d1 = d[S], d2 = d[2 * S], d3 = d[3 * S], d4 = d[4 * S], d5 = d[5 * S];
  vmpk_vector even = multiplyAdd(minus4, d2, d4), odd = multiplyAdd(minus4, d1, d3);
  vmpk_vector evenHalf = d4 - d2, oddHalf = d3 - d1;
  oddHalf = oddHalf + oddHalf;
  t[0] = multiplyAdd(four, d0, multiplyAdd(minus5, d2, d4));
  t[S] = even + odd;
  t[2 * S] = even - odd;
  t[3 * S] = evenHalf + oddHalf;
  t[4 * S] = evenHalf - oddHalf;
  t[5 * S] = multiplyAdd(four, d1, multiplyAdd(minus5, d3, d5));
}

VMPK_INLINE void transformOutput(const int M, const int S, const int T, const vmpk_vector *m, vmpk_vector *y) {
  vmpk_vector sum = m[S] + m[2 * S], difference = m[S] - m[2 * S];
  if (M == 2) {
    y[0] = m[0] + sum;
    y[T] = difference - m[3 * S];
    return;
  }
  vmpk_vector sumHalf = m[3 * S] + m[4 * S], differenceHalf = m[3 * S] - m[4 * S];
  y[0] = m[0] + sum + sumHalf;
  y[T] = multiplyAdd(splat(2.0f), differenceHalf, difference);
  y[2 * T] = multiplyAdd(splat(4.0f), sumHalf, sum);
  y[3 * T] = multiplyAdd(splat(8.0f), differenceHalf, difference) + m[5 * S];
}

/* Step one for the tile whose window starts at (iy, ix). to: the tile's row in the first position's matrix. */
VMPK_INLINE void scatterTile(const int M, const vmpk_filtering *f, vmpk_index iy, vmpk_index ix, float *to) {
  const int P = M + 2;
  const vmpk_index chunk = smaller(f->c, VMPK_ZEROS);
  for (vmpk_index begin = 0; begin < f->c; begin += chunk) {
    // The last chunk overlaps the one before, as does a chunk's last vector.
    const vmpk_index first = smaller(begin, f->c - chunk);
    const float *from[36];
    for (int i = 0; i < P; ++i)
      for (int j = 0; j < P; ++j) {
        int inside = (uintptr_t)(iy + i) < (uintptr_t)f->height && (uintptr_t)(ix + j) < (uintptr_t)f->width;
        from[i * P + j] = inside ? f->x + ((iy + i) * f->width + ix + j) * f->x_stride + first : zeros;
      }
    for (vmpk_index i = 0; i < chunk; i += WIDTH) {
      const vmpk_index at = smaller(i, chunk - WIDTH);
      vmpk_vector d[36], t[36];
      VMPK_UNROLL for (int j = 0; j < P; ++j) {
        VMPK_UNROLL for (int k = 0; k < P; ++k) d[k * P + j] = load(from[k * P + j] + at);
        transformInput(M, P, d + j, t + j);
      }
      VMPK_UNROLL for (int k = 0; k < P; ++k) {
        transformInput(M, 1, t + k * P, d + k * P);
        VMPK_UNROLL for (int j = 0; j < P; ++j) store(to + (k * P + j) * f->in_position + first + at, d[k * P + j]);
      }
    }
  }
}

/* Step three for the tile whose first output pixel is (oy, ox). from: the tile's row in the first position's sums. */
VMPK_INLINE void gatherTile(const int M, const vmpk_filtering *f, vmpk_index oy, vmpk_index ox, const float *from) {
  const int P = M + 2;
  const vmpk_index rows = smaller(M, f->row_end - oy), columns = smaller(M, f->out_width - ox);
  float *to = f->y + (oy * f->out_width + ox) * f->y_stride;
  const vmpk_vector low = splat(f->low), high = splat(f->high);
  for (vmpk_index i = 0; i < f->n; i += WIDTH) {
    const vmpk_index at = smaller(i, f->n - WIDTH);
    vmpk_vector m[36], t[24], y[16];
    VMPK_UNROLL for (int j = 0; j < P; ++j) {
      VMPK_UNROLL for (int k = 0; k < P; ++k) m[k * P + j] = load(from + (k * P + j) * f->out_position + at);
      transformOutput(M, P, P, m + j, t + j);
    }
    VMPK_UNROLL for (int k = 0; k < M; ++k) transformOutput(M, 1, 1, t + k * P, y + k * M);
    const vmpk_vector bias = f->bias ? load(f->bias + at) : splat(0.0f);
    VMPK_UNROLL for (int k = 0; k < M; ++k) VMPK_UNROLL for (int j = 0; j < M; ++j) {
      if (k < rows && j < columns)
        store(to + (k * f->out_width + j) * f->y_stride + at, clamp(y[k * M + j] + bias, low, high));
    }
  }
}

VMPK_INLINE void convolve(const int M, const vmpk_filtering *f, vmpk_index row_begin, vmpk_index block) {
  const int P = M + 2;
  const vmpk_index across = (f->out_width + M - 1) / M;
  const vmpk_index begin = row_begin / M * across, end = (f->row_end + M - 1) / M * across;
  for (vmpk_index first = begin; first < end; first += block) {
    const vmpk_index tiles = smaller(block, end - first);
    vmpk_index oy = first / across * M, ox = first % across * M;
    for (vmpk_index tile = 0; tile < tiles; ++tile) {
      scatterTile(M, f, oy - f->pad_top, ox - f->pad_left, f->in + tile * f->c);
      ox += M;
      if (ox >= f->out_width) {
        ox = 0;
        oy += M;
      }
    }
    const vmpk_index panels = (f->n + VMPK_PANEL - 1) / VMPK_PANEL * VMPK_PANEL * f->c;
    for (int position = 0; position < P * P; ++position)
      vmpk_gemm_f32(f->in + position * f->in_position, f->c, f->w + position * panels,
                    f->out + position * f->out_position, f->n, tiles, f->n, f->c, 0, -VMPK_INFINITY, VMPK_INFINITY);
    oy = first / across * M;
    ox = first % across * M;
    for (vmpk_index tile = 0; tile < tiles; ++tile) {
      gatherTile(M, f, oy, ox, f->out + tile * f->n);
      ox += M;
      if (ox >= f->out_width) {
        ox = 0;
        oy += M;
      }
    }
  }
}

#define VMPK_WINOGRAD(M)                                                                                               \
  VMPK_KERNEL void vmpk_winograd##M##_f32(                                                                             \
      const float *x, const float *w, float *y, float *scratch, int64_t height, int64_t width, int64_t c,              \
      int64_t x_stride, int64_t pad_top, int64_t pad_left, int64_t out_width, int64_t y_stride, int64_t row_begin,     \
      int64_t row_end, int64_t n, int64_t block, const float *bias, float low, float high) {                           \
    const vmpk_index in_position = (vmpk_index)(block * c) + POSITION_GAP;                                             \
    const vmpk_filtering filtering = {.x = x,                                                                          \
                                      .w = w,                                                                          \
                                      .bias = bias,                                                                    \
                                      .y = y,                                                                          \
                                      .in = scratch,                                                                   \
                                      .out = scratch + (M + 2) * (M + 2) * in_position,                                \
                                      .height = (vmpk_index)height,                                                    \
                                      .width = (vmpk_index)width,                                                      \
                                      .c = (vmpk_index)c,                                                              \
                                      .x_stride = (vmpk_index)x_stride,                                                \
                                      .pad_top = (vmpk_index)pad_top,                                                  \
                                      .pad_left = (vmpk_index)pad_left,                                                \
                                      .out_width = (vmpk_index)out_width,                                              \
                                      .y_stride = (vmpk_index)y_stride,                                                \
                                      .row_end = (vmpk_index)row_end,                                                  \
                                      .n = (vmpk_index)n,                                                              \
                                      .in_position = in_position,                                                      \
                                      .out_position = (vmpk_index)(block * n) + POSITION_GAP,                          \
                                      .low = low,                                                                      \
                                      .high = high};                                                                   \
    convolve(M, &filtering, (vmpk_index)row_begin, (vmpk_index)block);                                                 \
  }
VMPK_WINOGRAD(2)
VMPK_WINOGRAD(4)
