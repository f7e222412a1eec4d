/* Depthwise convolution: vectors run over channels, a block of neighbouring output pixels shares its input pixels.
 *
 *     input row    . p p p p p p .        3 taps, stride 1: four outputs need six pixels, each loaded once
 *     outputs        0 1 2 3              and used up to three times
 *
 * Taps outside of the image are left out: whole rows by the range of ky, the sides by the range of kx. */
#include "level.h"

typedef struct {
  const float *x, *w, *bias; /* x: the image's first pixel */
  vmpk_index width, c, w_stride, kw, stride, dilation_h, dilation_w;
  vmpk_index ky_begin, ky_end; /* taps inside of the image for this output row */
  const float *row;            /* the input row under ky_begin */
  vmpk_index c_begin, c_end;   /* the channels that blocks work on */
  float low, high;
} vmpk_line;

/* A block: output pixels, and vectors of channels. Their product is the number of sums in flight. */
#define BLOCK 4
#if defined(VMPK_FMA)
#define DEEP 2
#else
#define DEEP 1
#endif
#if defined(__i386__) && WIDTH > 1
#undef BLOCK
#define BLOCK 2
#endif

/* Channels are taken in multiples of this, or all at once: shorter pieces of memory cost more than they save. */
#define CHUNK 64
#define CHUNK_BYTES (20 * 1024)

/* BLOCK output pixels, DEEP vectors of channels. K: taps across, S: stride across, both constant once inlined.
 * from: the input pixel under the first output's first tap; of the pixels from there on, [begin, end) are inside of the
 * image. */
VMPK_INLINE void computeBlock(const int K, const int S, const vmpk_line *line, const float *from, int begin, int end,
                              const float *w, const float *bias, float *to) {
  const vmpk_index c = line->c;
  vmpk_vector acc[BLOCK][DEEP];
  VMPK_UNROLL for (int p = 0; p < BLOCK; ++p) VMPK_UNROLL for (int v = 0; v < DEEP; ++v) acc[p][v] =
      bias ? load(bias + v * WIDTH) : splat(0.0f);
#pragma clang loop unroll(disable)
  for (vmpk_index ky = line->ky_begin; ky < line->ky_end; ++ky) {
    vmpk_vector weight[5][DEEP];
    VMPK_UNROLL for (int kx = 0; kx < K; ++kx) VMPK_UNROLL for (int v = 0; v < DEEP; ++v) weight[kx][v] =
        load(w + (ky * K + kx) * line->w_stride + v * WIDTH);
    VMPK_UNROLL for (int i = 0; i < (BLOCK - 1) * S + K; ++i) {
      if (i < begin || i >= end)
        continue;
      VMPK_UNROLL for (int v = 0; v < DEEP; ++v) {
        vmpk_vector pixel = load(from + i * c + v * WIDTH);
        VMPK_UNROLL for (int p = 0; p < BLOCK; ++p) if (i - p * S >= 0 && i - p * S < K) acc[p][v] =
            multiplyAdd(pixel, weight[i - p * S][v], acc[p][v]);
      }
    }
    from += line->dilation_h * line->width * c;
  }
  vmpk_vector low = splat(line->low), high = splat(line->high);
  VMPK_UNROLL for (int p = 0; p < BLOCK; ++p) VMPK_UNROLL for (int v = 0; v < DEEP; ++v)
      store(to + p * c + v * WIDTH, clamp(acc[p][v], low, high));
}

/* All channels of a block from the output pixel ox on. The last vectors overlap those before. */
#define VMPK_BLOCK(K, S)                                                                                               \
  VMPK_KERNEL static void block##K##x##S(const vmpk_line *line, vmpk_index ix, float *to) {                            \
    const vmpk_index c = line->c, most = (BLOCK - 1) * S + K;                                                          \
    const int begin = (int)larger(0, smaller(-ix, most)), end = (int)smaller(line->width - ix, most);                  \
    const float *from = line->row + ix * c;                                                                            \
    for (vmpk_index i = line->c_begin; i < line->c_end; i += DEEP * WIDTH) {                                           \
      vmpk_index at = smaller(i, c - DEEP * WIDTH);                                                                    \
      const float *bias = line->bias ? line->bias + at : 0;                                                            \
      if (begin == 0 && end == most)                                                                                   \
        computeBlock(K, S, line, from + at, 0, (BLOCK - 1) * S + K, line->w + at, bias, to + at);                      \
      else                                                                                                             \
        computeBlock(K, S, line, from + at, begin, end, line->w + at, bias, to + at);                                  \
    }                                                                                                                  \
  }
VMPK_BLOCK(3, 1)
VMPK_BLOCK(3, 2)
VMPK_BLOCK(5, 1)
VMPK_BLOCK(5, 2)

/* One pixel, any window; the taps [kx_begin, kx_end) are inside of the image. from: the pixel under tap
 * (ky_begin, kx_begin). V vectors of channels at once, for their sums to overlap in time. */
VMPK_INLINE void computePixel(const int V, const vmpk_line *line, const float *from, const float *w, const float *bias,
                              vmpk_index kx_begin, vmpk_index kx_end, float *to) {
  vmpk_vector acc[4];
  VMPK_UNROLL for (int v = 0; v < V; ++v) acc[v] = bias ? load(bias + v * WIDTH) : splat(0.0f);
  for (vmpk_index ky = line->ky_begin; ky < line->ky_end; ++ky) {
    const float *pixel = from, *tap = w + (ky * line->kw + kx_begin) * line->w_stride;
    for (vmpk_index kx = kx_begin; kx < kx_end; ++kx) {
      VMPK_UNROLL for (int v = 0; v < V; ++v) acc[v] =
          multiplyAdd(load(pixel + v * WIDTH), load(tap + v * WIDTH), acc[v]);
      pixel += line->dilation_w * line->c;
      tap += line->w_stride;
    }
    from += line->dilation_h * line->width * line->c;
  }
  vmpk_vector low = splat(line->low), high = splat(line->high);
  VMPK_UNROLL for (int v = 0; v < V; ++v) store(to + v * WIDTH, clamp(acc[v], low, high));
}

/* Fewer channels than a vector has. */
static void pixelScalar(const vmpk_line *line, const float *from, vmpk_index kx_begin, vmpk_index kx_end, float *to) {
  for (vmpk_index i = 0; i < line->c; ++i) {
    float sum = line->bias ? line->bias[i] : 0.0f;
    for (vmpk_index ky = line->ky_begin; ky < line->ky_end; ++ky)
      for (vmpk_index kx = kx_begin; kx < kx_end; ++kx)
        sum += from[((ky - line->ky_begin) * line->dilation_h * line->width + (kx - kx_begin) * line->dilation_w) *
                        line->c +
                    i] *
               line->w[(ky * line->kw + kx) * line->w_stride + i];
    sum = sum < line->low ? line->low : sum;
    to[i] = line->high < sum ? line->high : sum;
  }
}

VMPK_KERNEL static void pixelClipped(const vmpk_line *line, vmpk_index ix, float *to) {
  // The first tap with ix + kx * dilation >= 0, and the first with ix + kx * dilation >= width.
  vmpk_index kx_begin = ix < 0 ? (-ix + line->dilation_w - 1) / line->dilation_w : 0;
  vmpk_index kx_end = line->width > ix ? (line->width - ix + line->dilation_w - 1) / line->dilation_w : 0;
  kx_begin = smaller(kx_begin, line->kw);
  kx_end = larger(kx_begin, smaller(kx_end, line->kw));
  const float *from = line->row + (ix + kx_begin * line->dilation_w) * line->c;
  if (line->c < WIDTH) {
    pixelScalar(line, from, kx_begin, kx_end, to);
    return;
  }
  vmpk_index i = 0;
  for (; i + 4 * WIDTH <= line->c; i += 4 * WIDTH)
    computePixel(4, line, from + i, line->w + i, line->bias ? line->bias + i : 0, kx_begin, kx_end, to + i);
  for (; i < line->c; i += WIDTH) {
    vmpk_index at = smaller(i, line->c - WIDTH);
    computePixel(1, line, from + at, line->w + at, line->bias ? line->bias + at : 0, kx_begin, kx_end, to + at);
  }
}

VMPK_INLINE int hasBlocks(const vmpk_line *line, vmpk_index out_width) {
  return (line->kw == 3 || line->kw == 5) && (line->stride == 1 || line->stride == 2) && line->dilation_w == 1 &&
         line->c >= DEEP * WIDTH && out_width >= BLOCK;
}

/* One output row. In blocks, the last overlaps the one before. */
static void runLine(const vmpk_line *line, vmpk_index pad_left, vmpk_index out_width, float *y) {
  if (!hasBlocks(line, out_width)) {
    for (vmpk_index ox = 0; ox < out_width; ++ox)
      pixelClipped(line, ox * line->stride - pad_left, y + ox * line->c);
    return;
  }
  for (vmpk_index ox = 0; ox < out_width; ox += BLOCK) {
    vmpk_index at = smaller(ox, out_width - BLOCK), ix = at * line->stride - pad_left;
    float *to = y + at * line->c;
    if (line->kw == 3 && line->stride == 1)
      block3x1(line, ix, to);
    else if (line->kw == 3)
      block3x2(line, ix, to);
    else if (line->stride == 1)
      block5x1(line, ix, to);
    else
      block5x2(line, ix, to);
  }
}

void vmpk_depthwise_f32(const float *x, const float *w, float *y, int64_t height, int64_t width, int64_t c,
                        int64_t w_stride, int64_t kh, int64_t kw, int64_t stride_h, int64_t stride_w,
                        int64_t dilation_h, int64_t dilation_w, int64_t pad_top, int64_t pad_left, int64_t out_width,
                        int64_t row_begin, int64_t row_end, const float *bias, float low, float high) {
  vmpk_line line = {.x = x,
                    .w = w,
                    .bias = bias,
                    .width = (vmpk_index)width,
                    .c = (vmpk_index)c,
                    .w_stride = (vmpk_index)w_stride,
                    .kw = (vmpk_index)kw,
                    .stride = (vmpk_index)stride_w,
                    .dilation_h = (vmpk_index)dilation_h,
                    .dilation_w = (vmpk_index)dilation_w,
                    .low = low,
                    .high = high};
  const vmpk_index rows = (vmpk_index)height, taps = (vmpk_index)kh, across = (vmpk_index)out_width;
  // So many channels at a time that the rows of a window stay in the first-level cache for the next output row.
  const vmpk_index fitting = CHUNK_BYTES / (vmpk_index)sizeof(float) / (taps * line.width);
  const vmpk_index chunk = hasBlocks(&line, across) && fitting >= CHUNK ? fitting / CHUNK * CHUNK : larger(line.c, 1);
  for (line.c_begin = 0; line.c_begin < line.c; line.c_begin += chunk) {
    line.c_end = smaller(line.c, line.c_begin + chunk);
    for (vmpk_index oy = (vmpk_index)row_begin; oy < (vmpk_index)row_end; ++oy) {
      const vmpk_index iy = oy * (vmpk_index)stride_h - (vmpk_index)pad_top;
      line.ky_begin = iy < 0 ? smaller(taps, (-iy + line.dilation_h - 1) / line.dilation_h) : 0;
      line.ky_end = rows > iy ? smaller(taps, (rows - iy + line.dilation_h - 1) / line.dilation_h) : 0;
      line.ky_end = larger(line.ky_begin, line.ky_end);
      line.row = x + (iy + line.ky_begin * line.dilation_h) * line.width * line.c;
      runLine(&line, (vmpk_index)pad_left, across, y + oy * across * line.c);
    }
  }
}
