#include "targets/Target.h"
#include "tests/targets/Fixture.h"
#include "tests/targets/Scratch.h"

#include "llvm/Object/ELFObjectFile.h"

#include <dlfcn.h>
#include <gtest/gtest.h>

using namespace vmpack;
using namespace vmpack::tests;

namespace {

/// Opens a .so and runs its function 0.
void runSharedObject(const std::string &path) {
  void *library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  ASSERT_TRUE(library) << dlerror();
  auto query = reinterpret_cast<vmpk_query_fn>(dlsym(library, "vmpk_query"));
  ASSERT_TRUE(query) << dlerror();
  expectFixtureOutput(runQuery(query, 4), 4);
  dlclose(library);
}

TEST(LinuxSo, RunsNatively) {
  Scratch scratch;
  build("linux-so", makeFixture(), {}, scratch.path("out"));
  for (const char *level : {"x86-64-v2", "x86-64-v3"})
    runSharedObject(scratch.path("out/fixture." + std::string(level) + ".so"));
}

} // namespace
