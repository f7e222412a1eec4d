// iOS and macOS archives: linked by lld as an app's linker would, and their code run by macho_loader.c.
#include "tests/targets/Fixture.h"
#include "tests/targets/Scratch.h"

#include <gtest/gtest.h>

using namespace vmpack;
using namespace vmpack::tests;

namespace {

struct AppleCase {
  const char *target, *folder, *arch, *platform, *runner;
};

const AppleCase appleCases[] = {
    {"ios-static", "ios-arm64", "arm64", "ios 15.0 15.0", VMPACK_RUN_AARCH64},
    {"ios-static", "ios-arm64", "arm64", "ios 13.0 13.0", VMPACK_RUN_AARCH64}, // fixups of the older kind
    {"ios-static", "ios-arm64_x86_64-simulator", "arm64", "ios-simulator 15.0 15.0", VMPACK_RUN_AARCH64},
    {"ios-static", "ios-arm64_x86_64-simulator", "x86_64", "ios-simulator 15.0 15.0", VMPACK_RUN_NATIVE},
    {"macos-static", "macos-arm64_x86_64", "arm64", "macos 12.0 12.0", VMPACK_RUN_AARCH64},
    {"macos-static", "macos-arm64_x86_64", "x86_64", "macos 12.0 12.0", VMPACK_RUN_NATIVE},
};

TEST(Apple, CodeRuns) {
  Scratch scratch;
  for (const AppleCase &each : appleCases) {
    SCOPED_TRACE(std::string(each.folder) + " " + each.arch + " " + each.platform);
    if (filesOf(scratch.path(each.target)).empty())
      build(each.target, makeFixture(true), {}, scratch.path(each.target));
    std::string library = scratch.path(each.target) + "/" + each.folder + "/libfixture.a",
                image = scratch.path("image");
    run(std::string(VMPACK_LD64) + " -arch " + each.arch + " -platform_version " + each.platform +
        " -dylib -all_load -dead_strip -exported_symbol _vmpk_fixture_query " + library + " -o " + image);
    expectFixtureOutput(runProgram(each.runner, image + " vmpk_fixture_query 0 -", 4), 4);
    expectFixtureOutput(runProgram(each.runner, image + " vmpk_fixture_query 1 - 9", 9), 9);
  }
}

} // namespace
