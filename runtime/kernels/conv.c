/* Two-dimensional convolution as an implicit matrix product: a row of the left matrix is an output pixel's window. */
#include "tile.h"

/* Stack: the pointers of a block of tiles, and copies of windows. */
#define TABLE 1024
#define COPY_FLOATS 1536
/* Tiles that share a panel while it is in the first-level cache. */
#define BLOCK_TILES 16

/* One call's geometry, in indices of the machine. */
typedef struct {
  const float *x, *w, *bias;
  float *y;
  vmpk_index height, width, c, x_stride, kw, taps, stride_h, stride_w, dilation_h, dilation_w, pad_top, pad_left;
  vmpk_index out_width, y_stride, n;
  float low, high;
} vmpk_window;

/* A pixel's top left corner in the input. */
typedef struct {
  vmpk_index y, x;
} vmpk_corner;

VMPK_INLINE vmpk_corner cornerOf(const vmpk_window *window, vmpk_index pixel) {
  vmpk_index oy = pixel / window->out_width, ox = pixel - oy * window->out_width;
  return (vmpk_corner){oy * window->stride_h - window->pad_top, ox * window->stride_w - window->pad_left};
}

/* The input pixel under tap (ky, kx), NULL outside of the image. */
VMPK_INLINE const float *pixelUnder(const vmpk_window *window, vmpk_corner corner, vmpk_index ky, vmpk_index kx) {
  vmpk_index iy = corner.y + ky * window->dilation_h, ix = corner.x + kx * window->dilation_w;
  int inside = (uintptr_t)iy < (uintptr_t)window->height && (uintptr_t)ix < (uintptr_t)window->width;
  return inside ? window->x + (iy * window->width + ix) * window->x_stride : 0;
}

/* The part of a strip that does not depend on how rows are found. `begin`, `end`: rows of the panel. */
VMPK_INLINE vmpk_strip stripOf(const vmpk_window *window, vmpk_index column, vmpk_index begin, vmpk_index end) {
  const vmpk_index k = window->taps * window->c;
  return (vmpk_strip){.b = stripStart(window->w, k, column, begin),
                      .panel_stride = panelStride(k, window->n - column),
                      .init_stride = begin ? window->y_stride : 0,
                      .ldc = window->y_stride,
                      .columns = smaller(COLUMNS, window->n - column),
                      .low = end == k ? window->low : -VMPK_INFINITY,
                      .high = end == k ? window->high : VMPK_INFINITY};
}

/* Where sums start: from the bias, or from what an earlier pass left in y. */
VMPK_INLINE const float *initOf(const vmpk_window *window, vmpk_index pixel, vmpk_index column, vmpk_index begin) {
  return begin ? window->y + pixel * window->y_stride + column : window->bias ? window->bias + column : zeros;
}

VMPK_INLINE void nextCorner(const vmpk_window *window, vmpk_corner *corner) {
  corner->x += window->stride_w;
  if (corner->x >= window->out_width * window->stride_w - window->pad_left) {
    corner->x = -window->pad_left;
    corner->y += window->stride_h;
  }
}

/* ---- Many channels: a segment is a chunk of VMPK_ZEROS channels of a tap ---- */

/* The pointers of one tile for the segments [begin, end): segment = tap * chunks + chunk. */
static void fillChunks(const vmpk_window *window, const float **table, vmpk_corner corner, vmpk_index rows,
                       vmpk_index begin, vmpk_index end, vmpk_index chunks) {
  for (vmpk_index r = 0; r < rows; ++r, nextCorner(window, &corner)) {
    vmpk_index tap = begin / chunks, chunk = begin - tap * chunks;
    vmpk_index ky = tap / window->kw, kx = tap - ky * window->kw;
    const float *from = pixelUnder(window, corner, ky, kx);
    for (vmpk_index s = begin; s < end; ++s) {
      table[(s - begin) * rows + r] = from ? from + chunk * VMPK_ZEROS : zeros;
      if (++chunk < chunks)
        continue;
      chunk = 0;
      if (++kx == window->kw) {
        kx = 0;
        ++ky;
      }
      from = pixelUnder(window, corner, ky, kx);
    }
  }
}

/* All strips of the tiles whose pointers are in the table; strips: what they share. */
VMPK_KERNEL static void multiplyTable(const vmpk_window *window, const float *const *table, vmpk_index pixel,
                                      vmpk_index pixels, vmpk_index begin, vmpk_index end, const vmpk_strip *shape) {
  for (vmpk_index j = 0; j < window->n; j += COLUMNS) {
    vmpk_strip strip = stripOf(window, j, begin, end);
    strip.count = shape->count;
    strip.length = shape->length;
    strip.period = shape->period;
    strip.first = shape->first;
    const float *init = initOf(window, pixel, j, begin);
    float *y = window->y + pixel * window->y_stride + j;
    vmpk_index p = 0;
    for (; nextRows(pixels - p) == ROWS; p += ROWS)
      computeTile(ROWS, VECTORS, &strip, table + p * strip.count, init + p * strip.init_stride,
                  y + p * window->y_stride);
    while (p < pixels) {
      vmpk_index rows = nextRows(pixels - p);
      runTile(rows, &strip, table + p * strip.count, init + p * strip.init_stride, y + p * window->y_stride);
      p += rows;
    }
  }
}

static void convolveChunks(const vmpk_window *window, vmpk_index pixel_begin, vmpk_index pixel_end) {
  const float *table[TABLE];
  const vmpk_index c = window->c, chunks = (c + VMPK_ZEROS - 1) / VMPK_ZEROS, segments = window->taps * chunks;
  const vmpk_index pass = smaller(segments, TABLE / ROWS);
  const vmpk_index block = larger(1, smaller(BLOCK_TILES, TABLE / (ROWS * pass))) * ROWS;
  for (vmpk_index pixel = pixel_begin; pixel < pixel_end; pixel += block) {
    const vmpk_index pixels = smaller(block, pixel_end - pixel);
    for (vmpk_index s = 0; s < segments; s += pass) {
      const vmpk_strip shape = {.count = smaller(pass, segments - s),
                                .length = VMPK_ZEROS,
                                .period = c,
                                .first = c - s % chunks * VMPK_ZEROS};
      const vmpk_index next = s + shape.count;
      for (vmpk_index p = 0; p < pixels;) {
        vmpk_index rows = nextRows(pixels - p);
        fillChunks(window, table + p * shape.count, cornerOf(window, pixel + p), rows, s, next, chunks);
        p += rows;
      }
      multiplyTable(window, table, pixel, pixels, s / chunks * c + s % chunks * VMPK_ZEROS,
                    next / chunks * c + next % chunks * VMPK_ZEROS, &shape);
    }
  }
}

/* ---- Few channels: a segment is a row of the window, all taps of it at once ---- */

/* Whether a row of the window lies in one piece in the image. */
VMPK_INLINE int isWhole(const vmpk_window *window, vmpk_index x) {
  return window->dilation_w == 1 && window->x_stride == window->c && x >= 0 && x + window->kw <= window->width;
}

/* Copies a row of the window, with zeros for taps outside of the image. */
static void copyRow(const vmpk_window *window, float *to, vmpk_corner corner, vmpk_index ky) {
  const vmpk_index c = window->c;
  for (vmpk_index kx = 0; kx < window->kw; ++kx, to += c) {
    const float *from = pixelUnder(window, corner, ky, kx);
    from = from ? from : zeros;
    for (vmpk_index i = 0; i < c; ++i)
      to[i] = from[i];
  }
}

/* The pointers of one tile for the window's rows [begin, end). Returns where the copies end. */
static float *fillRows(const vmpk_window *window, const float **table, float *copies, vmpk_corner corner,
                       vmpk_index rows, vmpk_index begin, vmpk_index end) {
  for (vmpk_index r = 0; r < rows; ++r, nextCorner(window, &corner)) {
    const int whole = isWhole(window, corner.x);
    for (vmpk_index ky = begin; ky < end; ++ky) {
      const float **entry = table + (ky - begin) * rows + r;
      vmpk_index iy = corner.y + ky * window->dilation_h;
      if ((uintptr_t)iy >= (uintptr_t)window->height) {
        *entry = zeros;
      } else if (whole) {
        *entry = window->x + (iy * window->width + corner.x) * window->c;
      } else {
        copyRow(window, copies, corner, ky);
        *entry = copies;
        copies += window->kw * window->c;
      }
    }
  }
  return copies;
}

static void convolveRows(const vmpk_window *window, vmpk_index pixel_begin, vmpk_index pixel_end) {
  const float *table[TABLE];
  float copies[COPY_FLOATS];
  const vmpk_index length = window->kw * window->c, kh = window->taps / window->kw;
  const vmpk_index pass = smaller(kh, COPY_FLOATS / (ROWS * length));
  const vmpk_index block = smaller(BLOCK_TILES, TABLE / (ROWS * pass)) * ROWS;
  for (vmpk_index pixel = pixel_begin, pixels; pixel < pixel_end; pixel += pixels) {
    for (vmpk_index ky = 0; ky < kh; ky += pass) {
      const vmpk_strip shape = {.count = smaller(pass, kh - ky), .length = length, .period = length, .first = length};
      // A block of several passes is one tile, so that its copies fit; else it ends where the next tile's might not.
      const vmpk_index most = smaller(pass < kh ? ROWS : block, pixel_end - pixel);
      float *copy = copies;
      for (pixels = 0; pixels < most;) {
        vmpk_index rows = nextRows(most - pixels);
        if (copy + rows * shape.count * length > copies + COPY_FLOATS) {
          // Back to full tiles: a shorter block would divide its last rows in another way.
          pixels -= pixels > ROWS ? pixels % ROWS : 0;
          break;
        }
        copy = fillRows(window, table + pixels * shape.count, copy, cornerOf(window, pixel + pixels), rows, ky,
                        ky + shape.count);
        pixels += rows;
      }
      multiplyTable(window, table, pixel, pixels, ky * length, (ky + shape.count) * length, &shape);
    }
  }
}

void vmpk_conv_f32(const float *x, const float *w, float *y, int64_t height, int64_t width, int64_t c, int64_t x_stride,
                   int64_t kh, int64_t kw, int64_t stride_h, int64_t stride_w, int64_t dilation_h, int64_t dilation_w,
                   int64_t pad_top, int64_t pad_left, int64_t out_width, int64_t y_stride, int64_t pixel_begin,
                   int64_t pixel_end, int64_t n, const float *bias, float low, float high) {
  if (pixel_begin >= pixel_end)
    return;
  if (kh * kw == 1 && stride_h == 1 && stride_w == 1 && !pad_top && !pad_left && out_width == width) {
    vmpk_gemm_f32(x + (vmpk_index)(pixel_begin * x_stride), x_stride, w, y + (vmpk_index)(pixel_begin * y_stride),
                  y_stride, pixel_end - pixel_begin, n, c, bias, low, high);
    return;
  }
  const vmpk_window window = {.x = x,
                              .w = w,
                              .bias = bias,
                              .y = y,
                              .height = (vmpk_index)height,
                              .width = (vmpk_index)width,
                              .c = (vmpk_index)c,
                              .x_stride = (vmpk_index)x_stride,
                              .kw = (vmpk_index)kw,
                              .taps = (vmpk_index)(kh * kw),
                              .stride_h = (vmpk_index)stride_h,
                              .stride_w = (vmpk_index)stride_w,
                              .dilation_h = (vmpk_index)dilation_h,
                              .dilation_w = (vmpk_index)dilation_w,
                              .pad_top = (vmpk_index)pad_top,
                              .pad_left = (vmpk_index)pad_left,
                              .out_width = (vmpk_index)out_width,
                              .y_stride = (vmpk_index)y_stride,
                              .n = (vmpk_index)n,
                              .low = low,
                              .high = high};
  // Rows when they fit into the zeros, and when copies of a tile's windows fit; but short segments always.
  const vmpk_index row = window.kw * window.c;
  if (row <= VMPK_ZEROS && row * ROWS <= COPY_FLOATS && (kh * row * ROWS <= COPY_FLOATS || c <= 4))
    convolveRows(&window, (vmpk_index)pixel_begin, (vmpk_index)pixel_end);
  else
    convolveChunks(&window, (vmpk_index)pixel_begin, (vmpk_index)pixel_end);
}
