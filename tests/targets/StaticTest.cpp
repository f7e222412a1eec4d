#include "targets/ObjectCheck.h"
#include "tests/targets/Fixture.h"
#include "tests/targets/Scratch.h"

#include "llvm/Object/Archive.h"
#include "llvm/Object/MachOUniversal.h"
#include "llvm/Support/CommandLine.h"
#include "llvm/Support/MemoryBuffer.h"

#include <gtest/gtest.h>

using namespace vmpack;
using namespace vmpack::tests;
using targets::BuildOptions;

namespace {

/// The members of an archive, or of the archives in a fat file.
std::vector<std::vector<char>> objectsOf(const std::string &path) {
  std::vector<std::vector<char>> objects;
  std::vector<char> bytes = readFile(path);
  auto addArchive = [&](const llvm::object::Archive &archive) {
    llvm::Error error = llvm::Error::success();
    for (const llvm::object::Archive::Child &child : archive.children(error)) {
      llvm::StringRef member = llvm::cantFail(child.getBuffer());
      objects.emplace_back(member.begin(), member.end());
    }
    llvm::cantFail(std::move(error));
  };
  llvm::MemoryBufferRef buffer(llvm::StringRef(bytes.data(), bytes.size()), path);
  if (llvm::StringRef(bytes.data(), 8) == "!<arch>\n") {
    addArchive(*llvm::cantFail(llvm::object::Archive::create(buffer)));
    return objects;
  }
  auto fat = llvm::cantFail(llvm::object::MachOUniversalBinary::create(buffer));
  for (const auto &slice : fat->objects())
    addArchive(*llvm::cantFail(slice.getAsArchive()));
  return objects;
}

struct StaticCase {
  const char *target;
  std::vector<std::string> libraries;
  size_t objects;
};

const StaticCase staticCases[] = {
    {"ios-static", {"ios-arm64", "ios-arm64_x86_64-simulator"}, 3},
    {"macos-static", {"macos-arm64_x86_64"}, 2},
    {"linux-static", {"aarch64", "x86-64-v2", "x86-64-v3"}, 3},
    {"web-static", {"baseline", "simd128"}, 2},
};

TEST(Static, OneExternalSymbolAndNoneUndefined) {
  Scratch scratch;
  for (bool runtimeless : {false, true})
    for (const StaticCase &each : staticCases) {
      SCOPED_TRACE(each.target);
      BuildOptions options;
      options.runtimeless = runtimeless;
      std::string directory = scratch.path(std::string(each.target) + (runtimeless ? "-runtimeless" : ""));
      build(each.target, makeFixture(), options, directory);
      size_t count = 0;
      for (const std::string &folder : each.libraries)
        for (const std::vector<char> &object : objectsOf(directory + "/" + folder + "/libfixture.a")) {
          EXPECT_EQ(llvm::cantFail(targets::exportedSymbols(object)),
                    std::vector<std::string>{runtimeless ? "fixture_run" : "vmpk_fixture_query"});
          EXPECT_TRUE(llvm::cantFail(targets::undefinedSymbols(object)).empty());
          ++count;
        }
      EXPECT_EQ(count, each.objects);
    }
}

TEST(Static, SameBytesEveryTime) {
  Scratch scratch;
  for (const StaticCase &each : staticCases) {
    for (const char *copy : {"/a", "/b"})
      build(each.target, makeFixture(true), {}, scratch.path(each.target) + copy);
    run("diff -r " + scratch.path(each.target) + "/a " + scratch.path(each.target) + "/b");
  }
}

const char *const typedProgram = R"(
#include "fixture.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  static float x[VMPK_FIXTURE_X_ELEMENTS], y[VMPK_FIXTURE_FLOAT_ELEMENTS];
  void *arena = aligned_alloc(VMPK_FIXTURE_ALIGNMENT, VMPK_FIXTURE_ARENA_BYTES);
  unsigned i;
  for (i = 0; i < VMPK_FIXTURE_X_ELEMENTS; ++i)
    x[i] = 0.1f * (float)(i % 17) - 0.7f;
  if (RUN(x, y, (char *)arena + 4) != 1) return 2; /* misaligned */
  if (RUN(x, y, arena) != 0) return 1;
  for (i = 0; i < VMPK_FIXTURE_FLOAT_ELEMENTS; ++i)
    printf("%.9g ", (double)y[i]);
  free(arena);
  return 0;
}
)";

/// Compiles `program` with a fixture's header and object or archive, and gives its output.
std::vector<float> compileAndRun(const std::string &compiler, const std::string &source, const std::string &include,
                                 const std::string &library, const std::string &runner = "") {
  Scratch scratch;
  bool cxx = compiler.find("++") != std::string::npos;
  std::string file = scratch.path(cxx ? "program.cpp" : "program.c"), program = scratch.path("program");
  writeFile(file, source);
  run(compiler + " -Wall -Wextra -Wpedantic -Werror -I" + include + " " + file + " " + library + " -o " + program);
  return parseFloats(run(runner + program));
}

TEST(Static, LinuxProgramRuns) {
  Scratch scratch;
  for (bool runtimeless : {false, true}) {
    BuildOptions options;
    options.runtimeless = runtimeless;
    std::string out = scratch.path(runtimeless ? "plain" : "module");
    build("linux-static", makeFixture(), options, out);
    std::string run = runtimeless ? " '-DRUN=fixture_run'" : " '-DRUN=vmpk_fixture_run'";
    for (const std::string &compiler : {std::string("gcc -std=c11"), std::string("clang-22 -std=c11"),
                                        std::string("g++ -std=c++17"), std::string("clang++-22 -std=c++17")})
      for (const char *level : {"/x86-64-v2", "/x86-64-v3"})
        expectFixtureOutput(
            compileAndRun(compiler + run, typedProgram, out + "/include", out + level + "/libfixture.a"), 4);
    expectFixtureOutput(compileAndRun("aarch64-linux-gnu-gcc -static" + run, typedProgram, out + "/include",
                                      out + "/aarch64/libfixture.a", "qemu-aarch64 "),
                        4);
  }
}

const char *const dynamicProgram = R"(
#include "fixture.h"
#include <stdio.h>
#include <stdlib.h>
int main(void) {
  static float x[3 * 7], y[5 * 7];
  uint64_t bytes;
  int64_t dims[2];
  void *arena;
  unsigned i;
  for (i = 0; i < 3 * 7; ++i)
    x[i] = 0.1f * (float)(i % 17) - 0.7f;
  if (CALL(measure)(0, &bytes, dims) != 8 || CALL(measure)(1001, &bytes, dims) != 8) return 3;
  if (CALL(measure)(7, NULL, NULL) != 0) return 4;
  if (CALL(measure)(7, &bytes, dims) != 0 || dims[0] != 7 || dims[1] != 5) return 2;
  arena = aligned_alloc(64, (size_t)(bytes + 63) / 64 * 64);
  if (CALL(run)(x, y, 7, WEIGHTS arena) != 0) return 1;
  for (i = 0; i < 5 * 7; ++i)
    printf("%.9g ", (double)y[i]);
  free(arena);
  return 0;
}
)";

TEST(Static, DynamicDims) {
  Scratch scratch;
  for (bool runtimeless : {false, true}) {
    BuildOptions options;
    options.runtimeless = runtimeless;
    std::string out = scratch.path(runtimeless ? "plain" : "module");
    build("linux-static", makeFixture(true), options, out);
    std::string prefix = runtimeless ? "fixture_any_batch_" : "vmpk_fixture_any_batch_";
    std::string source = "#define CALL(name) " + prefix + "##name\n#define WEIGHTS\n" + dynamicProgram;
    expectFixtureOutput(compileAndRun("cc -std=c11", source, out + "/include", out + "/x86-64-v2/libfixture.a"), 7);
  }
}

TEST(Static, ExternalWeights) {
  Scratch scratch;
  targets::SharedModule module = makeFixture(true);
  std::string load = "#include <stdint.h>\nstatic union { uint64_t words[64]; unsigned char bytes[512]; } "
                     "__attribute__((aligned(64))) vmpk_test_weights = {.bytes = {";
  for (uint8_t byte : module.weights)
    load += std::to_string(byte) + ",";
  load += "}};\n#define WEIGHTS &vmpk_test_weights,\n";
  for (bool runtimeless : {false, true}) {
    BuildOptions options;
    options.runtimeless = runtimeless;
    options.weights = targets::WeightsMode::External;
    std::string out = scratch.path(runtimeless ? "plain" : "module");
    build("linux-static", module, options, out);
    std::vector<char> written = readFile(out + "/fixture.weights");
    EXPECT_TRUE(std::equal(written.begin(), written.end(), reinterpret_cast<const char *>(module.weights.data()),
                           reinterpret_cast<const char *>(module.weights.data() + module.weights.size())));
    std::string prefix = runtimeless ? "fixture_any_batch_" : "vmpk_fixture_any_batch_";
    std::string source = "#define CALL(name) " + prefix + "##name\n" + load + dynamicProgram;
    expectFixtureOutput(compileAndRun("cc -std=c11", source, out + "/include", out + "/x86-64-v2/libfixture.a"), 7);
  }
}

struct ObjectCase {
  const char *triple, *cpu;
};

TEST(Object, AnyMachine) {
  Scratch scratch;
  const ObjectCase cases[] = {{"x86_64-unknown-linux-gnu", ""},       {"x86_64-unknown-linux-gnu", "x86-64-v4"},
                              {"i686-unknown-linux-gnu", "pentium4"}, {"armv7a-linux-androideabi21", "cortex-a8"},
                              {"aarch64-unknown-linux-gnu", ""},      {"arm64-apple-ios13.0.0", ""},
                              {"x86_64-pc-windows-msvc", "haswell"},  {"aarch64-pc-windows-msvc", ""},
                              {"wasm32-unknown-unknown", ""},         {"riscv64-unknown-linux-gnu", "sifive-u74"}};
  for (const ObjectCase &each : cases)
    for (bool runtimeless : {false, true}) {
      SCOPED_TRACE(std::string(each.triple) + " " + each.cpu);
      BuildOptions options;
      options.triple = each.triple;
      options.cpu = each.cpu;
      options.runtimeless = runtimeless;
      std::string out = scratch.path(std::string(each.triple) + each.cpu + (runtimeless ? "-plain" : ""));
      build("object", makeFixture(true), options, out);
      if (filesOf(out).empty())
        continue;
      std::vector<char> object = readFile(out + "/fixture.o");
      std::vector<std::string> expected = {"vmpk_fixture_query"};
      if (runtimeless)
        expected = {"fixture_any_batch_measure", "fixture_any_batch_run", "fixture_forward_run"};
      std::vector<std::string> exported = llvm::cantFail(targets::exportedSymbols(object));
      llvm::sort(exported);
      EXPECT_EQ(exported, expected);
      EXPECT_TRUE(llvm::cantFail(targets::undefinedSymbols(object)).empty());
    }
}

/// 32-bit machines: pointers in 8-byte slots, 64-bit divisions and copies from the support functions.
// Other machines' code generators, and lld, set these process-wide options whenever they please.
TEST(Object, GlobalLimitsOfJumpTablesDoNotMatter) {
  Scratch scratch;
  llvm::cl::Option *option = llvm::cl::getRegisteredOptions().lookup("min-jump-table-entries");
  auto *limit = static_cast<llvm::cl::opt<unsigned> *>(option);
  ASSERT_NE(limit, nullptr);
  BuildOptions options;
  options.triple = "x86_64-unknown-linux";
  for (unsigned value : {2u, 1000u}) {
    limit->setValue(value);
    build("object", makeFixture(true), options, scratch.path(std::to_string(value)));
  }
  limit->setValue(4);
  run("diff -r " + scratch.path("2") + " " + scratch.path("1000"));
}

TEST(Object, RunsOn32Bit) {
  struct Case {
    const char *triple, *cpu, *flag, *runner;
  };
  const Case cases[] = {{"armv7a-unknown-linux-gnueabi", "cortex-a8", "-mcpu=cortex-a8", "qemu-arm -cpu cortex-a9 "},
                        {"i686-unknown-linux-gnu", "pentium4", "-march=pentium4", "qemu-i386 "}};
  for (const Case &each : cases) {
    SCOPED_TRACE(each.triple);
    Scratch scratch;
    BuildOptions options;
    options.triple = each.triple;
    options.cpu = each.cpu;
    options.runtimeless = true;
    build("object", makeFixture(true), options, scratch.path("out"));
    writeFile(scratch.path("string.h"), "");
    run(std::string("clang-22 --target=") + each.triple + " " + each.flag +
        " -O1 -ffreestanding -fno-stack-protector -I" + scratch.path() + " -I" + scratch.path("out") + " -c " +
        VMPACK_SOURCE_DIR + "/tests/targets/freestanding.c -o " + scratch.path("main.o"));
    run("ld.lld-22 -static -no-pie " + scratch.path("main.o") + " " + scratch.path("out/fixture.o") + " -o " +
        scratch.path("program"));
    expectFixtureOutput(runProgram(each.runner + scratch.path("program"), "", 7), 7);
  }
}

TEST(Object, SaysWhatItCannotDo) {
  Scratch scratch;
  BuildOptions options;
  options.triple = "pdp11-unknown-none";
  EXPECT_NE(buildError("object", makeFixture(), options, scratch.path("out")).find("unknown triple"),
            std::string::npos);
  options.triple = "x86_64-unknown-linux-gnu";
  options.cpu = "z80";
  EXPECT_NE(buildError("object", makeFixture(), options, scratch.path("out")).find("'z80' is no CPU"),
            std::string::npos);
  options.triple = "powerpc64-unknown-linux-gnu";
  options.cpu = "";
  EXPECT_NE(buildError("object", makeFixture(), options, scratch.path("out")).find("big-endian"), std::string::npos);
}

} // namespace
