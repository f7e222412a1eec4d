/* The register tile that matrix products and convolutions share.
 *
 *            b: one strip of COLUMNS columns of a panel (or of two panels), `count` segments of rows one after another
 *           +---------+
 *   a row 0 | c tile  |   c[r][j] = clamp(init[r][j] + sum over segments s, k: rows[s * R + r][k] * b[..k][j])
 *   ...     |         |
 *   a row R |         |   A segment of a matrix product is a whole row of a. A segment of a convolution is a tap's
 *           +---------+   pixel, or 'zeros' for a tap that lies outside of the image. */
#ifndef VMPK_KERNELS_TILE_H
#define VMPK_KERNELS_TILE_H

#include "level.h"

/* What the tiles of one strip have in common. */
typedef struct {
  const float *b;
  vmpk_index panel_stride; /* from a panel to the next, for tiles that span two; 0 where only one is left */
  vmpk_index count;        /* segments */
  vmpk_index length;       /* of a full segment */
  vmpk_index period;       /* segments are cut from stretches of this many rows of b: the last may be shorter */
  vmpk_index first;        /* rows left of the first segment's stretch */
  vmpk_index init_stride;  /* 0: every row starts from the bias */
  vmpk_index ldc;
  vmpk_index columns; /* of the tile that exist: the others are neither read nor written */
  float low, high;
} vmpk_strip;

VMPK_INLINE const float *tileColumn(const vmpk_strip *strip, const float *b, int v) {
  return b + (v * WIDTH / VMPK_PANEL) * strip->panel_stride + v * WIDTH % VMPK_PANEL;
}

/* Adds `length` steps of k. */
VMPK_INLINE const float *accumulate(const int R, const int V, vmpk_vector acc[][VECTORS], const float *const *rows,
                                    const float *b, const vmpk_strip *strip, vmpk_index length) {
  const float *row[MOST_ROWS];
  VMPK_UNROLL for (int r = 0; r < R; ++r) row[r] = rows[r];
  vmpk_index k = 0;
#ifdef VMPK_LANES
  for (; k + WIDTH <= length; k += WIDTH) {
    vmpk_vector a[MOST_ROWS];
    VMPK_UNROLL for (int r = 0; r < R; ++r) a[r] = load(row[r] + k);
    VMPK_UNROLL for (int lane = 0; lane < WIDTH; ++lane) {
      VMPK_UNROLL for (int v = 0; v < V; ++v) {
        vmpk_vector column = load(tileColumn(strip, b, v));
        VMPK_UNROLL for (int r = 0; r < R; ++r) acc[r][v] = multiplyAdd(column, splat(a[r][lane]), acc[r][v]);
      }
      b += VMPK_PANEL;
    }
  }
#endif
#pragma clang loop unroll(disable)
  for (; k < length; ++k) {
    vmpk_vector column[VECTORS];
    VMPK_UNROLL for (int v = 0; v < V; ++v) column[v] = load(tileColumn(strip, b, v));
    VMPK_UNROLL for (int r = 0; r < R; ++r) {
      vmpk_vector a = splat(row[r][k]);
      VMPK_UNROLL for (int v = 0; v < V; ++v) acc[r][v] = multiplyAdd(a, column[v], acc[r][v]);
    }
    b += VMPK_PANEL;
  }
  return b;
}

/* One tile of R rows and V vectors, both constant once inlined. */
VMPK_INLINE void computeTile(const int R, const int V, const vmpk_strip *strip, const float *const *rows,
                             const float *init, float *c) {
  vmpk_vector acc[MOST_ROWS][VECTORS];
  float edge[COLUMNS];
  const vmpk_index columns = strip->columns;
  if (columns == V * WIDTH) {
    VMPK_UNROLL for (int r = 0; r < R; ++r) VMPK_UNROLL for (int v = 0; v < V; ++v) acc[r][v] =
        load(init + r * strip->init_stride + v * WIDTH);
  } else {
    VMPK_UNROLL for (int r = 0; r < R; ++r) {
      for (int j = 0; j < V * WIDTH; ++j)
        edge[j] = j < columns ? init[r * strip->init_stride + j] : 0.0f;
      VMPK_UNROLL for (int v = 0; v < V; ++v) acc[r][v] = load(edge + v * WIDTH);
    }
  }
  const float *b = strip->b;
  vmpk_index left = strip->first;
  for (vmpk_index s = 0; s < strip->count; ++s) {
    vmpk_index length = smaller(left, strip->length);
    b = accumulate(R, V, acc, rows, b, strip, length);
    rows += R;
    left -= length;
    left = left ? left : strip->period;
  }
  vmpk_vector low = splat(strip->low), high = splat(strip->high);
  if (columns == V * WIDTH) {
    VMPK_UNROLL for (int r = 0; r < R; ++r) VMPK_UNROLL for (int v = 0; v < V; ++v)
        store(c + r * strip->ldc + v * WIDTH, clamp(acc[r][v], low, high));
    return;
  }
  VMPK_UNROLL for (int r = 0; r < R; ++r) {
    VMPK_UNROLL for (int v = 0; v < V; ++v) store(edge + v * WIDTH, clamp(acc[r][v], low, high));
    for (int j = 0; j < columns; ++j)
      c[r * strip->ldc + j] = edge[j];
  }
}

#define VMPK_TILE(R)                                                                                                   \
  VMPK_KERNEL static void tile##R(const vmpk_strip *strip, const float *const *rows, const float *init, float *c) {    \
    computeTile(R, VECTORS, strip, rows, init, c);                                                                     \
  }
#if ROWS == 2
#define VMPK_TILE_ROWS(X) X(1) X(2)
#elif ROWS == 4
#define VMPK_TILE_ROWS(X) X(1) X(2) X(3) X(4)
#elif ROWS == 5
#define VMPK_TILE_ROWS(X) X(1) X(2) X(3) X(4) X(5)
#elif ROWS == 6
#define VMPK_TILE_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6)
#else
#define VMPK_TILE_ROWS(X) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12)
#endif
VMPK_TILE_ROWS(VMPK_TILE)

/* A tile of 1 to ROWS rows. */
VMPK_KERNEL static void runTile(vmpk_index count, const vmpk_strip *strip, const float *const *rows, const float *init,
                                float *c) {
#define VMPK_TILE_CASE(R)                                                                                              \
  case R:                                                                                                              \
    tile##R(strip, rows, init, c);                                                                                     \
    break;
  switch (count) { VMPK_TILE_ROWS(VMPK_TILE_CASE) }
#undef VMPK_TILE_CASE
}

/* Rows of the next tile when `left` remain: the last two share what is over, since a tile of one or two rows leaves
 * most of the machine idle. */
VMPK_INLINE vmpk_index nextRows(vmpk_index left) {
  if (left >= 2 * ROWS || left == ROWS)
    return ROWS;
  return left > ROWS ? (left + 1) / 2 : left;
}

/* The columns [column, column + COLUMNS) of a packed matrix of k rows, from row `begin` on. */
VMPK_INLINE const float *stripStart(const float *panels, vmpk_index k, vmpk_index column, vmpk_index begin) {
  return panels + (column / VMPK_PANEL) * k * VMPK_PANEL + begin * VMPK_PANEL + column % VMPK_PANEL;
}

/* A strip's panel_stride: the second panel of the last tile may not exist. */
VMPK_INLINE vmpk_index panelStride(vmpk_index k, vmpk_index columns) {
  return columns > VMPK_PANEL ? k * VMPK_PANEL : 0;
}

/* What stands for a missing bias, and for pixels outside of an image. */
#define VMPK_ZEROS 256
static const float zeros[VMPK_ZEROS];

#define VMPK_INFINITY __builtin_inff()

#endif /* VMPK_KERNELS_TILE_H */
