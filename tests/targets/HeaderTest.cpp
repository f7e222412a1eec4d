#include "targets/Header.h"
#include "targets/Names.h"
#include "tests/targets/Fixture.h"
#include "tests/targets/Scratch.h"

#include <gtest/gtest.h>

using namespace vmpack;
using namespace vmpack::tests;

namespace {

TEST(Names, BecomeIdentifiers) {
  EXPECT_EQ(targets::cIdentifier("input:0"), "input_0");
  EXPECT_EQ(targets::cIdentifier("3d/conv"), "n3d_conv");
  EXPECT_EQ(targets::cIdentifier("float"), "float_");
  EXPECT_EQ(targets::cIdentifier("co_await"), "co_await_");
  EXPECT_EQ(targets::cIdentifier("__x"), "x");
  EXPECT_EQ(targets::cIdentifier("日本"), "unnamed");
  EXPECT_EQ(targets::cIdentifier(""), "unnamed");
}

TEST(Names, AreUniqueInAScope) {
  targets::NameScope scope;
  scope.reserve("arena");
  EXPECT_EQ(scope.unique("x.1"), "x_1");
  EXPECT_EQ(scope.unique("x/1"), "x_1_2");
  EXPECT_EQ(scope.unique("x:1"), "x_1_3");
  EXPECT_EQ(scope.unique("arena"), "arena_2");
}

/// A signature of the worst names, ranks and types.
targets::SharedModule awkward() {
  targets::SharedModule module = makeFixture();
  targets::Function function;
  function.name = "main";
  function.dims = {{"batch*/", 1, 8}, {"batch", 0, INT64_MAX}};
  function.inputs = {{"int", VMPK_DTYPE_F16, {-1, 3}},      {"int_", VMPK_DTYPE_BOOL, {}},
                     {"ünï", VMPK_DTYPE_U64, {2}},          {"arena", VMPK_DTYPE_I8, {-2}},
                     {"int64_t", VMPK_DTYPE_I64, {0}},      {"NULL", VMPK_DTYPE_F64, {1}},
                     {"*/ evil \\\n", VMPK_DTYPE_I32, {1}}, {"vmpk_call", VMPK_DTYPE_U8, {1}}};
  function.outputs = {
      {"int", VMPK_DTYPE_F32, {VMPK_DIM_COMPUTED, -1}}, {"X", VMPK_DTYPE_I16, {1}}, {"x", VMPK_DTYPE_U16, {1}}};
  function.arenaSize = UINT64_MAX;
  targets::Function second = function;
  second.name = "ma in";
  second.dims.clear();
  second.inputs.clear();
  second.outputs.resize(1);
  second.outputs[0].dims = {2, 2};
  second.arenaSize = 0;
  module.functions = {function, second};
  return module;
}

TEST(Header, CompilesEverywhereWithoutWarnings) {
  Scratch scratch;
  for (bool external : {false, true}) {
    writeFile(scratch.path("fixture.h"), targets::staticHeader(awkward(), {external, 1024}));
    writeFile(scratch.path("plain.h"), targets::runtimelessHeader(awkward(), {external, 0}));
    std::string runtime = " -I" VMPACK_SOURCE_DIR "/runtime/include";
    for (std::string includes :
         {"#include \"fixture.h\"\n#include \"fixture.h\"\n", "#include \"plain.h\"\n",
          "#include \"vmpk/abi.h\"\n#include \"fixture.h\"\n", "#include \"fixture.h\"\n#include \"vmpk/abi.h\"\n"}) {
      writeFile(scratch.path("user.c"), includes + "int used(void);\nint used(void) { return 0; }\n");
      run("cp " + scratch.path("user.c") + " " + scratch.path("user.cpp"));
      bool system = includes.find("vmpk/") != std::string::npos;
      std::string flags = std::string(" -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I") + scratch.path() +
                          (system ? " -isystem " VMPACK_SOURCE_DIR "/runtime/include" : "") + " ";
      for (std::string compiler :
           {"gcc -std=c99", "clang-22 -std=c99", "gcc -std=c11", "aarch64-linux-gnu-gcc -std=c99"})
        run(compiler + flags + scratch.path("user.c"));
      for (std::string compiler : {"g++ -std=c++17", "clang++-22 -std=c++17", "clang++-22 -std=c++20"})
        run(compiler + flags + scratch.path("user.cpp"));
    }
  }
}

} // namespace
