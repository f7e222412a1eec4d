// Each row says GFLOP/s and the share of the CPU's measured peak; math rows say the time of one element.
#include <benchmark/benchmark.h>

extern "C" {
#include "runtime/kernels/kernels.h"
void apply(int function, const float *x, float *y, int64_t count);
}

#include <chrono>
#include <vector>

namespace {

/// The most that one core does: twelve independent chains of fused multiply-adds.
double measurePeak() {
  double best = 0;
  for (int round = 0; round < 30; ++round) {
    const long count = 500000;
    long left = count;
    auto start = std::chrono::steady_clock::now();
    asm volatile("vzeroall\n"
                 "1:\n"
                 ".irp r, 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11\n"
                 "vfmadd231ps %%ymm14, %%ymm15, %%ymm\\r\n"
                 ".endr\n"
                 "dec %0\n"
                 "jnz 1b"
                 : "+r"(left)::"cc", "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7", "xmm8", "xmm9",
                   "xmm10", "xmm11", "xmm12", "xmm13", "xmm14", "xmm15");
    double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, count * 12 * 16.0 / seconds);
  }
  return best;
}

double peak() {
  static const double measured = measurePeak();
  return measured;
}

void report(benchmark::State &state, double flops) {
  double limit = peak();
  state.counters["GFLOPS"] = benchmark::Counter(flops * 1e-9, benchmark::Counter::kIsIterationInvariantRate);
  state.counters["%peak"] = benchmark::Counter(100 * flops / limit, benchmark::Counter::kIsIterationInvariantRate);
}

std::vector<float> filled(size_t count) {
  std::vector<float> data(count + 16);
  for (size_t i = 0; i < count; ++i)
    data[i] = float(int(i * 2654435761u >> 24) - 128) / 128;
  return data;
}

int64_t padded(int64_t n) { return (n + VMPK_PANEL - 1) / VMPK_PANEL * VMPK_PANEL; }

void gemm(benchmark::State &state) {
  int64_t m = state.range(0), n = state.range(1), k = state.range(2);
  auto a = filled(m * k), b = filled(padded(n) * k), c = filled(m * n), bias = filled(n);
  for (auto _ : state) {
    vmpk_gemm_f32(a.data(), k, b.data(), c.data(), n, m, n, k, bias.data(), 0, 6);
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * m * n * k);
}
// Square, and a transformer's.
BENCHMARK(gemm)->Args({512, 512, 512})->Args({1024, 1024, 1024})->Args({128, 256, 256})->Args({128, 1024, 256});
BENCHMARK(gemm)->Args({128, 256, 1024})->Args({128, 128, 64})->Args({1, 1000, 1280})->Args({1, 512, 784});
// MobileNetV2's pointwise layers.
BENCHMARK(gemm)->Args({12544, 16, 32})->Args({12544, 96, 16})->Args({3136, 24, 96})->Args({3136, 144, 24});
BENCHMARK(gemm)->Args({784, 32, 144})->Args({784, 192, 32})->Args({196, 64, 192})->Args({196, 384, 64});
BENCHMARK(gemm)->Args({196, 96, 384})->Args({196, 576, 96})->Args({49, 160, 576})->Args({49, 960, 160});
BENCHMARK(gemm)->Args({49, 320, 960})->Args({49, 1280, 320});

/// Arguments: size, input channels, output channels, kernel, stride.
void conv(benchmark::State &state) {
  int64_t size = state.range(0), c = state.range(1), n = state.range(2), kernel = state.range(3);
  int64_t stride = state.range(4), pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  auto x = filled(size * size * c), w = filled(padded(n) * kernel * kernel * c), y = filled(out * out * n);
  auto bias = filled(n);
  for (auto _ : state) {
    vmpk_conv_f32(x.data(), w.data(), y.data(), size, size, c, c, kernel, kernel, stride, stride, 1, 1, pad, pad, out,
                  n, 0, out * out, n, bias.data(), 0, 6);
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * out * out * n * kernel * kernel * c);
}
BENCHMARK(conv)->Args({56, 64, 64, 3, 1})->Args({28, 128, 128, 3, 1})->Args({14, 256, 256, 3, 1});
BENCHMARK(conv)->Args({7, 512, 512, 3, 1})->Args({56, 64, 128, 3, 2})->Args({56, 64, 128, 1, 2});
BENCHMARK(conv)->Args({224, 3, 32, 3, 2})->Args({224, 3, 64, 7, 2})->Args({55, 16, 64, 3, 1});

/// Arguments: size, channels, kernel, stride.
void depthwise(benchmark::State &state) {
  int64_t size = state.range(0), c = state.range(1), kernel = state.range(2), stride = state.range(3);
  int64_t pad = kernel / 2, out = (size + 2 * pad - kernel) / stride + 1;
  auto x = filled(size * size * c), w = filled(kernel * kernel * c), y = filled(out * out * c), bias = filled(c);
  for (auto _ : state) {
    vmpk_depthwise_f32(x.data(), w.data(), y.data(), size, size, c, c, kernel, kernel, stride, stride, 1, 1, pad, pad,
                       out, 0, out, bias.data(), 0, 6);
    benchmark::ClobberMemory();
  }
  report(state, 2.0 * out * out * c * kernel * kernel);
}
BENCHMARK(depthwise)->Args({112, 32, 3, 1})->Args({112, 96, 3, 2})->Args({56, 144, 3, 1})->Args({56, 144, 3, 2});
BENCHMARK(depthwise)->Args({28, 192, 3, 1})->Args({28, 192, 3, 2})->Args({14, 384, 3, 1})->Args({14, 576, 3, 1});
BENCHMARK(depthwise)->Args({14, 576, 3, 2})->Args({7, 960, 3, 1})->Args({28, 240, 5, 1})->Args({14, 672, 5, 2});

void pack(benchmark::State &state) {
  int64_t n = state.range(0), k = state.range(1);
  bool transposed = state.range(2);
  auto b = filled(n * k), panels = filled(padded(n) * k);
  for (auto _ : state) {
    vmpk_pack_panels_f32(b.data(), transposed ? 1 : n, transposed ? k : 1, panels.data(), k, n, 0,
                         padded(n) / VMPK_PANEL);
    benchmark::ClobberMemory();
  }
  state.SetBytesProcessed(int64_t(state.iterations()) * n * k * 8);
}
BENCHMARK(pack)->Args({128, 64, 0})->Args({128, 64, 1})->Args({512, 512, 0})->Args({512, 512, 1});

void math(benchmark::State &state) {
  static const char *const names[] = {
#define NAME(name) #name,
      VMPK_MATH_UNARY(NAME)};
  const int64_t count = 4096;
  std::vector<float> x(count), y(count);
  for (int64_t i = 0; i < count; ++i)
    x[i] = float(i) / count * 0.9f + 0.05f;
  for (auto _ : state) {
    apply(int(state.range(0)), x.data(), y.data(), count);
    benchmark::ClobberMemory();
  }
  state.SetLabel(names[state.range(0)]);
  state.counters["ns/element"] =
      benchmark::Counter(count * 1e-9, benchmark::Counter::kIsIterationInvariantRate | benchmark::Counter::kInvert);
}
BENCHMARK(math)->DenseRange(0, 22);

} // namespace
