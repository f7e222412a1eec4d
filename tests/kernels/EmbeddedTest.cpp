// What the program carries: every level, and its support functions, as bitcode.
#include "runtime/kernels/embedded.h"

#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <string>

namespace {

TEST(EmbeddedTest, EveryLevelAndItsSupport) {
  std::set<std::string> found;
  for (size_t i = 0; i < vmpk_kernel_level_count; ++i) {
    const vmpk_kernel_level_t &level = vmpk_kernel_levels[i];
    EXPECT_TRUE(found.insert(level.level).second) << level.level << " twice";
    ASSERT_GT(level.size, 1000u) << level.level;
    EXPECT_EQ(level.size % 4, 0u) << level.level;
    EXPECT_EQ(std::memcmp(level.data, "BC\xc0\xde", 4), 0) << level.level << " is no bitcode";
  }
  std::set<std::string> expected;
  for (const char *level : {"generic", "x86-64-v2", "x86-64-v3", "x86-64-v4", "x86", "armv8.0", "armv7",
                            "wasm-baseline", "wasm-simd128", "wasm-relaxed-simd"}) {
    expected.insert(level);
    expected.insert(std::string(level) + ".support");
  }
  EXPECT_EQ(found, expected);
}

} // namespace
