/* The matrix product with packed weights, and their packing. */
#include "tile.h"

/* Rows that are worked on together: what they read and write stays in the second-level cache while all panels pass by,
 * but a panel that was fetched should serve a good number of tiles. */
#define BLOCK_BYTES (192 * 1024)
#define BLOCK_TILES 16
/* Rows of a panel that are used in one go: more would push the panel out of the first-level cache too far. */
#define BLOCK_K 1024

VMPK_INLINE vmpk_index rowsOfBlock(vmpk_index n, vmpk_index k) {
  const vmpk_index floats = BLOCK_BYTES / (vmpk_index)sizeof(float);
  vmpk_index reading = floats / larger(k, 1), both = floats / (n + k);
  vmpk_index rows = larger(both, smaller(reading, BLOCK_TILES * ROWS));
  return larger(rows / ROWS, 2) * ROWS;
}

/* One row times several panels: a stream of weights, so many panels at once to keep many loads in flight. */
#define GEMV_PANELS (WIDTH >= 8 ? 4 : WIDTH == 4 ? 2 : 1)
#define GEMV_VECTORS (VMPK_PANEL / WIDTH)

VMPK_INLINE void multiplyRow(const int panels, const float *a, const float *b, vmpk_index panel_stride, float *out,
                             vmpk_index k, const float *init, vmpk_vector low, vmpk_vector high) {
  vmpk_vector acc[GEMV_PANELS * GEMV_VECTORS];
  VMPK_UNROLL for (int v = 0; v < panels * GEMV_VECTORS; ++v) acc[v] = load(init + v * WIDTH);
#pragma clang loop unroll(disable)
  for (vmpk_index i = 0; i < k; ++i) {
    vmpk_vector x = splat(a[i]);
    VMPK_UNROLL for (int p = 0; p < panels; ++p) VMPK_UNROLL for (int v = 0; v < GEMV_VECTORS; ++v) {
      const int at = p * GEMV_VECTORS + v;
      acc[at] = multiplyAdd(x, load(b + p * panel_stride + v * WIDTH), acc[at]);
    }
    b += VMPK_PANEL;
  }
  VMPK_UNROLL for (int v = 0; v < panels * GEMV_VECTORS; ++v) store(out + v * WIDTH, clamp(acc[v], low, high));
}

VMPK_KERNEL static void gemv(const float *a, const float *b, float *c, vmpk_index n, vmpk_index k, const float *bias,
                             float low, float high) {
  float sums[GEMV_PANELS * VMPK_PANEL], init[GEMV_PANELS * VMPK_PANEL];
  const vmpk_index panel_stride = k * VMPK_PANEL;
  for (vmpk_index j = 0; j < n;) {
    vmpk_index panels = n - j > (GEMV_PANELS - 1) * VMPK_PANEL ? GEMV_PANELS : 1;
    vmpk_index columns = smaller(panels * VMPK_PANEL, n - j);
    for (vmpk_index i = 0; i < panels * VMPK_PANEL; ++i)
      init[i] = bias && i < columns ? bias[j + i] : 0.0f;
    if (panels == GEMV_PANELS)
      multiplyRow(GEMV_PANELS, a, b, panel_stride, sums, k, init, splat(low), splat(high));
    else
      multiplyRow(1, a, b, panel_stride, sums, k, init, splat(low), splat(high));
    for (vmpk_index i = 0; i < columns; ++i)
      c[j + i] = sums[i];
    j += columns;
    b += panels * panel_stride;
  }
}

/* All tiles of one strip over the rows [0, m). */
VMPK_KERNEL static void multiplyStrip(const vmpk_strip *strip, const float *a, vmpk_index lda, const float *init,
                                      float *c, vmpk_index m) {
  const float *rows[MOST_ROWS];
  vmpk_index i = 0;
#ifdef NARROW_ROWS
  for (; strip->columns <= NARROW_VECTORS * WIDTH && m - i >= NARROW_ROWS; i += NARROW_ROWS) {
    VMPK_UNROLL for (int r = 0; r < NARROW_ROWS; ++r) rows[r] = a + (i + r) * lda;
    computeTile(NARROW_ROWS, NARROW_VECTORS, strip, rows, init + i * strip->init_stride, c + i * strip->ldc);
  }
#endif
  for (; nextRows(m - i) == ROWS; i += ROWS) {
    VMPK_UNROLL for (int r = 0; r < ROWS; ++r) rows[r] = a + (i + r) * lda;
    computeTile(ROWS, VECTORS, strip, rows, init + i * strip->init_stride, c + i * strip->ldc);
  }
  while (i < m) {
    vmpk_index count = nextRows(m - i);
    VMPK_UNROLL for (int r = 0; r < ROWS; ++r) rows[r] = a + (i + r) * lda;
    runTile(count, strip, rows, init + i * strip->init_stride, c + i * strip->ldc);
    i += count;
  }
}

VMPK_KERNEL void vmpk_gemm_f32(const float *a, int64_t lda, const float *b, float *c, int64_t ldc, int64_t m, int64_t n,
                               int64_t k, const float *bias, float low, float high) {
  const vmpk_index rows = (vmpk_index)m, columns = (vmpk_index)n, depth = (vmpk_index)k;
  const vmpk_index a_stride = (vmpk_index)lda, c_stride = (vmpk_index)ldc;
  if (rows == 1) {
    gemv(a, b, c, columns, depth, bias, low, high);
    return;
  }
  const vmpk_index block = rowsOfBlock(columns, smaller(depth, BLOCK_K));
  vmpk_index begin = 0;
  do {
    // Sums that are not complete yet wait in c.
    vmpk_index length = smaller(depth - begin, BLOCK_K);
    int is_last = begin + length == depth;
    for (vmpk_index i = 0; i < rows; i += block)
      for (vmpk_index j = 0; j < columns; j += COLUMNS) {
        const float *init = begin ? c + i * c_stride + j : bias ? bias + j : zeros;
        vmpk_strip strip = {.b = stripStart(b, depth, j, begin),
                            .panel_stride = panelStride(depth, columns - j),
                            .count = 1,
                            .length = length,
                            .period = length,
                            .first = length,
                            .init_stride = begin ? c_stride : 0,
                            .ldc = c_stride,
                            .columns = smaller(COLUMNS, columns - j),
                            .low = is_last ? low : -VMPK_INFINITY,
                            .high = is_last ? high : VMPK_INFINITY};
        multiplyStrip(&strip, a + i * a_stride + begin, a_stride, init, c + i * c_stride + j, smaller(block, rows - i));
      }
    begin += length;
  } while (begin < depth);
}

void vmpk_pack_panels_f32(const float *b, int64_t row_stride, int64_t column_stride, float *panels, int64_t k,
                          int64_t n, int64_t panel_begin, int64_t panel_end) {
  const vmpk_index depth = (vmpk_index)k, across = (vmpk_index)column_stride, down = (vmpk_index)row_stride;
  for (vmpk_index panel = (vmpk_index)panel_begin; panel < (vmpk_index)panel_end; ++panel) {
    const float *from = b + panel * VMPK_PANEL * across;
    float *to = panels + panel * VMPK_PANEL * depth;
    const vmpk_index columns = smaller(VMPK_PANEL, (vmpk_index)n - panel * VMPK_PANEL);
    if (columns == VMPK_PANEL) {
      for (vmpk_index i = 0; i < depth; ++i, from += down, to += VMPK_PANEL)
        VMPK_UNROLL for (int j = 0; j < VMPK_PANEL; ++j) to[j] = from[j * across];
      continue;
    }
    for (vmpk_index i = 0; i < depth; ++i, from += down, to += VMPK_PANEL)
      for (int j = 0; j < VMPK_PANEL; ++j)
        to[j] = j < columns ? from[j * across] : 0.0f;
  }
}
