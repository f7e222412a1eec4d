#include "Cases.h"

#include <stddef.h>

const gemm_case_t gemm_cases[] = {
    {1, 1, 1},     {1, 16, 1},   {1, 17, 5},   {1, 64, 33},   {1, 100, 300}, {1, 3, 7},
    {2, 1, 3},     {2, 15, 8},   {3, 16, 4},   {4, 31, 9},    {5, 32, 5},    {6, 8, 7},
    {7, 9, 13},    {8, 24, 16},  {9, 40, 1},   {10, 47, 2},   {11, 48, 31},  {12, 33, 64},
    {13, 96, 27},  {14, 65, 3},  {23, 80, 12}, {24, 128, 40}, {25, 17, 129}, {49, 160, 96},
    {50, 34, 1},   {64, 64, 64}, {100, 7, 50}, {3, 20, 1500}, {8, 33, 1024}, {9, 24, 1025},
    {13, 5, 2100}, {6, 16, 0},   {1, 20, 0},   {0, 8, 4},     {197, 48, 77}, {5, 24, 2049}};
const int gemm_case_count = sizeof gemm_cases / sizeof *gemm_cases;

const window_case_t conv_cases[] = {
    {7, 9, 3, 8, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1},        {8, 8, 1, 5, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {6, 7, 4, 33, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},       {9, 9, 12, 16, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {9, 8, 16, 24, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},      {10, 11, 17, 20, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},
    {12, 12, 20, 31, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2},    {12, 13, 9, 7, 3, 3, 1, 2, 2, 1, 0, 3, 1, 0},
    {5, 5, 300, 17, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},     {4, 4, 513, 9, 2, 2, 1, 1, 1, 1, 0, 0, 0, 0},
    {6, 6, 32, 40, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0},      {7, 7, 24, 16, 1, 1, 2, 2, 1, 1, 0, 0, 0, 0},
    {1, 40, 10, 12, 1, 5, 1, 2, 1, 1, 0, 2, 0, 2},     {1, 30, 2, 12, 1, 9, 1, 1, 1, 2, 0, 8, 0, 8},
    {16, 16, 3, 24, 16, 16, 16, 16, 1, 1, 0, 0, 0, 0}, {14, 14, 16, 8, 14, 14, 1, 1, 1, 1, 0, 0, 0, 0},
    {3, 3, 8, 16, 3, 3, 1, 1, 1, 1, 4, 4, 4, 4},       {5, 6, 8, 3, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1},
    {20, 20, 6, 50, 7, 7, 2, 2, 1, 1, 3, 3, 3, 3},     {3, 5, 64, 64, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1}};
const int conv_case_count = sizeof conv_cases / sizeof *conv_cases;

const window_case_t depthwise_cases[] = {
    {8, 8, 16, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},   {9, 11, 24, 0, 3, 3, 2, 2, 1, 1, 0, 0, 1, 1},
    {7, 7, 33, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},   {7, 7, 5, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},
    {14, 15, 40, 0, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2}, {14, 15, 19, 0, 5, 5, 2, 2, 1, 1, 2, 2, 2, 2},
    {4, 4, 8, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},    {3, 3, 64, 0, 3, 3, 2, 2, 1, 1, 1, 1, 1, 1},
    {2, 2, 16, 0, 5, 5, 1, 1, 1, 1, 2, 2, 2, 2},   {20, 20, 17, 0, 7, 7, 1, 1, 1, 1, 3, 3, 3, 3},
    {12, 12, 16, 0, 3, 3, 1, 1, 2, 2, 2, 2, 2, 2}, {12, 14, 16, 0, 3, 3, 1, 1, 2, 1, 2, 1, 2, 1},
    {1, 50, 12, 0, 1, 9, 1, 1, 1, 1, 0, 4, 0, 4},  {9, 20, 16, 0, 3, 5, 2, 1, 1, 1, 1, 2, 1, 2},
    {6, 6, 1, 0, 3, 3, 1, 1, 1, 1, 1, 1, 1, 1},    {5, 30, 48, 0, 3, 3, 1, 2, 1, 1, 1, 1, 1, 1},
    {5, 9, 20, 0, 2, 2, 2, 2, 1, 1, 0, 0, 0, 0},   {3, 3, 8, 0, 3, 3, 1, 1, 1, 1, 5, 5, 5, 5},
    {5, 13, 16, 0, 5, 3, 1, 3, 1, 1, 2, 1, 2, 1}};
const int depthwise_case_count = sizeof depthwise_cases / sizeof *depthwise_cases;

static float memory[CASES_OPERANDS][CASES_CAPACITY], output[CASES_CAPACITY];
static float *ends[CASES_OPERANDS] = {memory[0] + CASES_CAPACITY, memory[1] + CASES_CAPACITY,
                                      memory[2] + CASES_CAPACITY, memory[3] + CASES_CAPACITY,
                                      memory[4] + CASES_CAPACITY};
static float *input, *weights, *packed, *bias;
static uint32_t state;

#define MARGIN 7
#define CANARY 12345.0f

static void fill(float *data, int64_t count) {
  for (int64_t i = 0; i < count; ++i) {
    state = state * 1664525u + 1013904223u;
    data[i] = (float)((int)(state >> 24) % 17 - 8) * 0.125f;
  }
}

void endOperandsAt(float *const new_ends[CASES_OPERANDS]) {
  for (int i = 0; i < CASES_OPERANDS; ++i)
    ends[i] = new_ends[i];
}

static int64_t panelsOf(int64_t n) { return (n + VMPK_PANEL - 1) / VMPK_PANEL; }

/* packs: floats of packed weights. */
static void prepare(int64_t inputs, int64_t weight_count, int64_t packs, int64_t outputs, int64_t n, uint32_t seed) {
  input = ends[0] - inputs;
  weights = ends[1] - weight_count;
  packed = ends[2] - packs;
  bias = ends[3] - n;
  state = seed;
  fill(input, inputs);
  fill(weights, weight_count);
  fill(bias, n);
  for (int64_t i = 0; i < outputs; ++i)
    output[i] = CANARY;
}

static float clampTo(double x, float low, float high) {
  float y = (float)x;
  return y < low ? low : y > high ? high : y;
}

/* Rows of ld elements of which the first n hold results. */
static int countWrong(const float *expected_of_row, const float *row, int64_t n, int64_t ld) {
  int wrong = 0;
  for (int64_t j = 0; j < ld; ++j)
    wrong += row[j] != (j < n ? expected_of_row[j] : CANARY);
  return wrong;
}

int checkGemm(const kernels_t *kernels, const gemm_case_t *shape) {
  const int64_t m = shape->m, n = shape->n, k = shape->k, lda = k + 3, ldc = n + MARGIN;
  static float expected[4096];
  int wrong = 0;
  for (int variant = 0; variant < 3; ++variant) {
    const float low = variant == 1 ? -0.5f : -__builtin_inff(), high = variant == 1 ? 2.0f : __builtin_inff();
    const float *start = variant == 0 ? 0 : bias;
    const int64_t panels = panelsOf(n), middle = panels / 2;
    prepare(m ? m * lda - 3 : 0, k * n, panels * k * VMPK_PANEL, (m + 1) * ldc, n, (uint32_t)(m * 131 + n * 17 + k));
    // Variant 2 packs the transpose, and in two parts.
    const int64_t down = variant == 2 ? 1 : n, across = variant == 2 ? k : 1;
    kernels->pack(weights, down, across, packed, k, n, 0, middle);
    kernels->pack(weights, down, across, packed, k, n, middle, panels);
    for (int64_t p = 0; p < panels; ++p)
      for (int64_t i = 0; i < k; ++i)
        for (int64_t j = 0; j < VMPK_PANEL; ++j) {
          int64_t column = p * VMPK_PANEL + j;
          float want = column < n ? weights[i * down + column * across] : 0.0f;
          wrong += packed[(p * k + i) * VMPK_PANEL + j] != want;
        }
    kernels->gemm(input, lda, packed, output, ldc, m, n, k, start, low, high);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < n; ++j) {
        double sum = start ? start[j] : 0.0;
        for (int64_t x = 0; x < k; ++x)
          sum += (double)input[i * lda + x] * (double)weights[x * down + j * across];
        expected[j] = clampTo(sum, low, high);
      }
      wrong += countWrong(expected, output + i * ldc, n, ldc);
    }
    wrong += countWrong(expected, output + m * ldc, 0, ldc);
  }
  return wrong;
}

static int outSize(int in, int kernel, int stride, int dilation, int before, int after) {
  return (in + before + after - (kernel - 1) * dilation - 1) / stride + 1;
}

static double windowSum(const window_case_t *s, int64_t oy, int64_t ox, int64_t pixel_stride, const float *w,
                        int64_t w_tap, int64_t w_channel, int64_t first, int64_t channels) {
  double sum = 0.0;
  for (int64_t ky = 0; ky < s->kh; ++ky)
    for (int64_t kx = 0; kx < s->kw; ++kx) {
      int64_t iy = oy * s->stride_h + ky * s->dilation_h - s->pad_top;
      int64_t ix = ox * s->stride_w + kx * s->dilation_w - s->pad_left;
      if (iy < 0 || ix < 0 || iy >= s->height || ix >= s->width)
        continue;
      for (int64_t c = 0; c < channels; ++c)
        sum += (double)input[(iy * s->width + ix) * pixel_stride + first + c] *
               (double)w[(ky * s->kw + kx) * w_tap + c * w_channel];
    }
  return sum;
}

int checkConv(const kernels_t *kernels, const window_case_t *s) {
  const int64_t oh = outSize(s->height, s->kh, s->stride_h, s->dilation_h, s->pad_top, s->pad_bottom);
  const int64_t ow = outSize(s->width, s->kw, s->stride_w, s->dilation_w, s->pad_left, s->pad_right);
  const int64_t k = (int64_t)s->kh * s->kw * s->c, n = s->n;
  static float expected[1024];
  int wrong = 0;
  for (int variant = 0; variant < 2; ++variant) {
    // The second time as a slice of wider pixels, with bias and bounds.
    const int64_t x_stride = variant ? s->c + 5 : s->c, y_stride = n + MARGIN;
    const float low = variant ? 0.0f : -__builtin_inff(), high = variant ? 6.0f : __builtin_inff();
    prepare((int64_t)s->height * s->width * x_stride - (x_stride - s->c), k * n, panelsOf(n) * k * VMPK_PANEL,
            (oh * ow + 1) * y_stride, n, (uint32_t)(k + n + ow));
    kernels->pack(weights, n, 1, packed, k, n, 0, panelsOf(n));
    const int64_t cut[4] = {0, oh * ow / 3, variant ? oh * ow / 2 : oh * ow / 3, oh * ow};
    for (int part = 0; part < 3; ++part)
      kernels->conv(input, packed, output, s->height, s->width, s->c, x_stride, s->kh, s->kw, s->stride_h, s->stride_w,
                    s->dilation_h, s->dilation_w, s->pad_top, s->pad_left, ow, y_stride, cut[part], cut[part + 1], n,
                    variant ? bias : 0, low, high);
    for (int64_t pixel = 0; pixel < oh * ow; ++pixel) {
      for (int64_t j = 0; j < n; ++j)
        expected[j] = clampTo((variant ? bias[j] : 0.0) +
                                  windowSum(s, pixel / ow, pixel % ow, x_stride, weights + j, s->c * n, n, 0, s->c),
                              low, high);
      wrong += countWrong(expected, output + pixel * y_stride, n, y_stride);
    }
    wrong += countWrong(expected, output + oh * ow * y_stride, 0, y_stride);
  }
  return wrong;
}

int checkDepthwise(const kernels_t *kernels, const window_case_t *s) {
  const int64_t oh = outSize(s->height, s->kh, s->stride_h, s->dilation_h, s->pad_top, s->pad_bottom);
  const int64_t ow = outSize(s->width, s->kw, s->stride_w, s->dilation_w, s->pad_left, s->pad_right), c = s->c;
  static float expected[1024];
  int wrong = 0;
  for (int variant = 0; variant < 2; ++variant) {
    const int64_t w_stride = variant ? c + 3 : c;
    const float low = variant ? 0.0f : -__builtin_inff(), high = variant ? 1.5f : __builtin_inff();
    prepare((int64_t)s->height * s->width * c, s->kh * s->kw * w_stride - (w_stride - c), 0, (oh * ow + 1) * c, c,
            (uint32_t)(c + ow));
    for (int part = 0; part < 2; ++part)
      kernels->depthwise(input, weights, output, s->height, s->width, c, w_stride, s->kh, s->kw, s->stride_h,
                         s->stride_w, s->dilation_h, s->dilation_w, s->pad_top, s->pad_left, ow, part ? oh / 2 : 0,
                         part ? oh : oh / 2, variant ? bias : 0, low, high);
    for (int64_t pixel = 0; pixel < oh * ow; ++pixel) {
      for (int64_t j = 0; j < c; ++j)
        expected[j] =
            clampTo((variant ? bias[j] : 0.0) + windowSum(s, pixel / ow, pixel % ow, c, weights + j, w_stride, 0, j, 1),
                    low, high);
      wrong += countWrong(expected, output + pixel * c, c, c);
    }
    wrong += countWrong(expected, output + oh * ow * c, 0, c);
  }
  return wrong;
}

const winograd_case_t winograd_cases[] = {
    {6, 6, 16, 16, 0, 0, 0, 0, 1},  {8, 8, 16, 16, 1, 1, 1, 1, 4},  {7, 9, 17, 20, 1, 1, 1, 1, 3},
    {3, 3, 24, 33, 1, 1, 1, 1, 8},  {5, 21, 32, 16, 0, 2, 1, 0, 5}, {13, 13, 48, 17, 1, 1, 1, 1, 16},
    {1, 1, 16, 16, 1, 1, 1, 1, 36}, {4, 6, 300, 16, 1, 0, 1, 2, 2}, {6, 5, 40, 64, 2, 2, 2, 2, 7}};
const int winograd_case_count = sizeof winograd_cases / sizeof *winograd_cases;

static double absolute(double x) { return x < 0 ? -x : x; }

/* U = G g G^T in panels, from weights [3][3][c][n]. */
static void transformFilters(int tile, int64_t c, int64_t n) {
  static const double g[2][6][3] = {{{1, 0, 0}, {0.5, 0.5, 0.5}, {0.5, -0.5, 0.5}, {0, 0, 1}},
                                    {{0.25, 0, 0},
                                     {-1.0 / 6, -1.0 / 6, -1.0 / 6},
                                     {-1.0 / 6, 1.0 / 6, -1.0 / 6},
                                     {1.0 / 24, 1.0 / 12, 1.0 / 6},
                                     {1.0 / 24, -1.0 / 12, 1.0 / 6},
                                     {0, 0, 1}}};
  const double (*rows)[3] = g[tile / 4];
  const int64_t panels = panelsOf(n);
  for (int position = 0; position < (tile + 2) * (tile + 2); ++position)
    for (int64_t j = 0; j < panels * VMPK_PANEL; ++j)
      for (int64_t i = 0; i < c; ++i) {
        double sum = 0;
        for (int tap = 0; tap < 9; ++tap)
          sum += rows[position / (tile + 2)][tap / 3] * rows[position % (tile + 2)][tap % 3] *
                 (j < n ? (double)weights[(tap * c + i) * n + j] : 0.0);
        packed[((position * panels + j / VMPK_PANEL) * c + i) * VMPK_PANEL + j % VMPK_PANEL] = (float)sum;
      }
}

/* Within the bounds that kernels.h states. */
int checkWinograd(const kernels_t *kernels, const winograd_case_t *s) {
  const window_case_t window = {s->height, s->width,   s->c,        s->n,          3,           3, 1, 1, 1,
                                1,         s->pad_top, s->pad_left, s->pad_bottom, s->pad_right};
  const int64_t oh = outSize(s->height, 3, 1, 1, s->pad_top, s->pad_bottom), n = s->n;
  const int64_t ow = outSize(s->width, 3, 1, 1, s->pad_left, s->pad_right), y_stride = n + MARGIN;
  int wrong = 0;
  for (int variant = 0; variant < 4; ++variant) {
    const int tile = variant % 2 ? 4 : 2, bounded = variant / 2;
    const int64_t x_stride = bounded ? s->c + 5 : s->c;
    const float low = bounded ? 0.0f : -__builtin_inff(), high = bounded ? 6.0f : __builtin_inff();
    prepare(s->height * s->width * x_stride - (x_stride - s->c), 9 * s->c * n,
            (tile + 2) * (tile + 2) * panelsOf(n) * s->c * VMPK_PANEL, (oh * ow + 1) * y_stride, n,
            (uint32_t)(s->c + ow));
    transformFilters(tile, s->c, n);
    const int64_t middle = oh / 2 / tile * tile;
    float *scratch = ends[4] - (tile + 2) * (tile + 2) * (s->block * (s->c + n) + 32);
    for (int part = 0; part < 2; ++part)
      kernels->winograd[tile / 4](input, packed, output, scratch, s->height, s->width, s->c, x_stride, s->pad_top,
                                  s->pad_left, ow, y_stride, part ? middle : 0, part ? oh : middle, n, s->block,
                                  bounded ? bias : 0, low, high);
    // The largest |x| and |w| are 1.
    const double bound = (tile == 2 ? 1e-6 : 1e-5) * 9 * s->c;
    for (int64_t pixel = 0; pixel < oh * ow; ++pixel) {
      const float *row = output + pixel * y_stride;
      for (int64_t j = 0; j < n; ++j) {
        double sum = (bounded ? (double)bias[j] : 0.0) +
                     windowSum(&window, pixel / ow, pixel % ow, x_stride, weights + j, s->c * n, n, 0, s->c);
        wrong += !(absolute(row[j] - (double)clampTo(sum, low, high)) <= bound);
      }
      wrong += countWrong(row, row, n, n) + countWrong(0, row + n, 0, MARGIN);
    }
    wrong += countWrong(0, output + oh * ow * y_stride, 0, y_stride);
  }
  return wrong;
}

/* NaN sums stay NaN under bounds, and infinities obey them. */
int checkSpecials(const kernels_t *kernels) {
  const int64_t m = 13, n = 37, k = 3;
  int wrong = 0;
  prepare(m * k, k * n, panelsOf(n) * k * VMPK_PANEL, m * n, n, 1);
  for (int64_t i = 0; i < m; ++i)
    for (int64_t x = 0; x < k; ++x)
      input[i * k + x] = x ? 0.0f : i % 3 == 0 ? __builtin_nanf("") : i % 3 == 1 ? __builtin_inff() : -__builtin_inff();
  for (int64_t i = 0; i < k * n; ++i)
    weights[i] = 1.0f;
  kernels->pack(weights, n, 1, packed, k, n, 0, panelsOf(n));
  for (int64_t rows = 1; rows <= m; rows += m - 1) {
    kernels->gemm(input, k, packed, output, n, rows, n, k, 0, 0.0f, 6.0f);
    for (int64_t i = 0; i < rows; ++i)
      for (int64_t j = 0; j < n; ++j) {
        float y = output[i * n + j];
        wrong += i % 3 == 0 ? y == y : y != (i % 3 == 1 ? 6.0f : 0.0f);
      }
  }
  prepare(9 * 9 * 16, 9 * 16, 0, 9 * 9 * 16, 0, 2);
  for (int64_t i = 0; i < 9 * 9 * 16; ++i)
    input[i] = __builtin_nanf("");
  kernels->depthwise(input, weights, output, 9, 9, 16, 16, 3, 3, 1, 1, 1, 1, 1, 1, 9, 0, 9, 0, 0.0f, 6.0f);
  for (int64_t i = 0; i < 9 * 9 * 16; ++i)
    wrong += output[i] == output[i];
  return wrong;
}
