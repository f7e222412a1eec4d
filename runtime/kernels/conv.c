/* Two-dimensional convolution as an implicit matrix product: a row of the left matrix is an output pixel's window. */
#include "tile.h"

/* Few channels make short segments: their windows are copied together instead. */
#define GATHER_CHANNELS 8
/* Stack: 1024 pointers, or as many floats twice. */
#define TABLE 1024
#define GATHER_FLOATS 2048
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
                      .panel_stride = k * VMPK_PANEL,
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

/* The pointers of one tile for the segments [begin, end): segment = tap * chunks + chunk, a chunk of VMPK_ZEROS
 * channels. */
static void fillTable(const vmpk_window *window, const float **table, vmpk_index pixel, vmpk_index rows,
                      vmpk_index begin, vmpk_index end, vmpk_index chunks) {
  for (vmpk_index r = 0; r < rows; ++r) {
    vmpk_corner corner = cornerOf(window, pixel + r);
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

VMPK_KERNEL static void convolveIndirect(const vmpk_window *window, vmpk_index pixel_begin, vmpk_index pixel_end) {
  const float *table[TABLE];
  const vmpk_index c = window->c, chunks = (c + VMPK_ZEROS - 1) / VMPK_ZEROS, segments = window->taps * chunks;
  const vmpk_index pass = smaller(segments, TABLE / ROWS);
  const vmpk_index tiles = larger(1, smaller(BLOCK_TILES, TABLE / (ROWS * pass)));
  for (vmpk_index pixel = pixel_begin; pixel < pixel_end; pixel += tiles * ROWS) {
    const vmpk_index pixels = smaller(tiles * ROWS, pixel_end - pixel);
    for (vmpk_index s = 0; s < segments; s += pass) {
      const vmpk_index count = smaller(pass, segments - s);
      const vmpk_index begin = s / chunks * c + s % chunks * VMPK_ZEROS;
      const vmpk_index end = (s + count) / chunks * c + (s + count) % chunks * VMPK_ZEROS;
      for (vmpk_index p = 0; p < pixels;) {
        vmpk_index rows = nextRows(pixels - p);
        fillTable(window, table + p * count, pixel + p, rows, s, s + count, chunks);
        p += rows;
      }
      for (vmpk_index j = 0; j < window->n; j += COLUMNS) {
        vmpk_strip strip = stripOf(window, j, begin, end);
        strip.count = count;
        strip.length = VMPK_ZEROS;
        strip.period = c;
        strip.first = c - s % chunks * VMPK_ZEROS;
        for (vmpk_index p = 0; p < pixels;) {
          vmpk_index rows = nextRows(pixels - p);
          runTile(rows, &strip, table + p * count, initOf(window, pixel + p, j, begin),
                  window->y + (pixel + p) * window->y_stride + j);
          p += rows;
        }
      }
    }
  }
}

/* Copies the taps [begin, end) of one pixel's window. */
static void gather(const vmpk_window *window, float *to, vmpk_index pixel, vmpk_index begin, vmpk_index end) {
  vmpk_corner corner = cornerOf(window, pixel);
  vmpk_index ky = begin / window->kw, kx = begin - ky * window->kw;
  const vmpk_index c = window->c;
  for (vmpk_index tap = begin; tap < end; ++tap, to += c) {
    const float *from = pixelUnder(window, corner, ky, kx);
    from = from ? from : zeros;
    for (vmpk_index i = 0; i < c; ++i)
      to[i] = from[i];
    if (++kx == window->kw) {
      kx = 0;
      ++ky;
    }
  }
}

VMPK_KERNEL static void convolveGathered(const vmpk_window *window, vmpk_index pixel_begin, vmpk_index pixel_end) {
  float rows[GATHER_FLOATS];
  const vmpk_index c = window->c, taps = window->taps;
  const vmpk_index pass = smaller(taps, GATHER_FLOATS / (ROWS * c));
  const vmpk_index block = GATHER_FLOATS / (pass * c) / ROWS * ROWS;
  for (vmpk_index pixel = pixel_begin; pixel < pixel_end; pixel += block) {
    const vmpk_index pixels = smaller(block, pixel_end - pixel);
    for (vmpk_index tap = 0; tap < taps; tap += pass) {
      const vmpk_index end = smaller(taps, tap + pass), length = (end - tap) * c;
      for (vmpk_index p = 0; p < pixels; ++p)
        gather(window, rows + p * length, pixel + p, tap, end);
      for (vmpk_index j = 0; j < window->n; j += COLUMNS) {
        vmpk_strip strip = stripOf(window, j, tap * c, end * c);
        strip.count = 1;
        strip.length = strip.period = strip.first = length;
        for (vmpk_index p = 0; p < pixels;) {
          const float *pointers[ROWS];
          vmpk_index count = nextRows(pixels - p);
          VMPK_UNROLL for (int r = 0; r < ROWS; ++r) pointers[r] = rows + (p + r) * length;
          runTile(count, &strip, pointers, initOf(window, pixel + p, j, tap),
                  window->y + (pixel + p) * window->y_stride + j);
          p += count;
        }
      }
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
  if (c <= GATHER_CHANNELS)
    convolveGathered(&window, (vmpk_index)pixel_begin, (vmpk_index)pixel_end);
  else
    convolveIndirect(&window, (vmpk_index)pixel_begin, (vmpk_index)pixel_end);
}
