// Matrix products and convolutions of every level that this CPU runs, over ragged shapes.
#include "Levels.h"

#include <gtest/gtest.h>

#include <sys/mman.h>
#include <unistd.h>

namespace {

class KernelsTest : public testing::TestWithParam<int> {
protected:
  /// Operands end at a page that nobody may read.
  static void SetUpTestSuite() {
    const size_t page = sysconf(_SC_PAGESIZE), size = CASES_CAPACITY * sizeof(float);
    float *ends[CASES_OPERANDS];
    for (float *&end : ends) {
      char *memory =
          static_cast<char *>(mmap(nullptr, size + page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0));
      ASSERT_NE(memory, MAP_FAILED);
      ASSERT_EQ(mprotect(memory + size, page, PROT_NONE), 0);
      end = reinterpret_cast<float *>(memory + size);
    }
    endOperandsAt(ends);
  }

  const Level &level() const { return levels()[GetParam()]; }
};

TEST_P(KernelsTest, Gemm) {
  for (int i = 0; i < gemm_case_count; ++i)
    EXPECT_EQ(checkGemm(&level().kernels, &gemm_cases[i]), 0)
        << gemm_cases[i].m << "x" << gemm_cases[i].n << "x" << gemm_cases[i].k;
}

TEST_P(KernelsTest, GemmOfEverySmallSize) {
  for (int m = 1; m <= 26; ++m)
    for (int n = 1; n <= 50; n += n < 18 ? 1 : 5)
      for (int k : {1, 2, 3, 4, 5, 8, 11}) {
        gemm_case_t shape{m, n, k};
        EXPECT_EQ(checkGemm(&level().kernels, &shape), 0) << m << "x" << n << "x" << k;
      }
}

TEST_P(KernelsTest, Conv) {
  for (int i = 0; i < conv_case_count; ++i)
    EXPECT_EQ(checkConv(&level().kernels, &conv_cases[i]), 0) << "case " << i;
}

TEST_P(KernelsTest, Depthwise) {
  for (int i = 0; i < depthwise_case_count; ++i)
    EXPECT_EQ(checkDepthwise(&level().kernels, &depthwise_cases[i]), 0) << "case " << i;
}

TEST_P(KernelsTest, Winograd) {
  for (int i = 0; i < winograd_case_count; ++i)
    EXPECT_EQ(checkWinograd(&level().kernels, &winograd_cases[i]), 0) << "case " << i;
}

TEST_P(KernelsTest, DepthwiseOfEverySmallSize) {
  for (int size = 1; size <= 12; ++size)
    for (int c : {1, 4, 8, 12, 17, 33})
      for (int kernel : {3, 5})
        for (int stride : {1, 2}) {
          int pad = kernel / 2;
          window_case_t shape{size, size, c, 0, kernel, kernel, stride, stride, 1, 1, pad, pad, pad, pad};
          EXPECT_EQ(checkDepthwise(&level().kernels, &shape), 0) << size << " c " << c << " k " << kernel;
        }
}

TEST_P(KernelsTest, NanAndInfinity) { EXPECT_EQ(checkSpecials(&level().kernels), 0); }

INSTANTIATE_TEST_SUITE_P(Levels, KernelsTest, testing::Range(0, int(levels().size())),
                         [](const auto &info) { return levels()[info.param].name; });

} // namespace
