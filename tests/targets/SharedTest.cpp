#include "targets/Target.h"
#include "targets/shared/Bundle.h"
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

TEST(LinuxSo, RunsOnAarch64) {
  Scratch scratch;
  build("linux-so", makeFixture(true), {}, scratch.path("out"));
  std::string arguments = scratch.path("out/fixture.aarch64.so") + " vmpk_query 1 - 6";
  expectFixtureOutput(runProgram(VMPACK_RUN_AARCH64, arguments, 6), 6);
}

TEST(LinuxSo, TakesExternalWeights) {
  Scratch scratch;
  targets::BuildOptions options;
  options.weights = targets::WeightsMode::External;
  build("linux-so", makeFixture(), options, scratch.path("out"));
  std::string arguments =
      scratch.path("out/fixture.x86-64-v2.so") + " vmpk_query 0 " + scratch.path("out/fixture.weights");
  expectFixtureOutput(runProgram(VMPACK_RUN_NATIVE, arguments, 4), 4);
}

/// What field reports say of .so files that apps cannot load.
void expectFreestanding(const std::vector<char> &bytes) {
  auto object = llvm::cantFail(llvm::object::ObjectFile::createObjectFile(
      llvm::MemoryBufferRef(llvm::StringRef(bytes.data(), bytes.size()), "so")));
  const auto *elf = llvm::cast<llvm::object::ELFObjectFileBase>(object.get());
  std::vector<std::string> visible;
  for (const llvm::object::SymbolRef &symbol : elf->getDynamicSymbolIterators()) {
    EXPECT_FALSE(llvm::cantFail(symbol.getFlags()) & llvm::object::SymbolRef::SF_Undefined);
    visible.push_back(llvm::cantFail(symbol.getName()).str());
  }
  EXPECT_EQ(visible, std::vector<std::string>{"vmpk_query"});
  for (const llvm::object::SectionRef &section : object->sections()) {
    llvm::StringRef name = llvm::cantFail(section.getName());
    EXPECT_NE(name, ".tdata");
    EXPECT_NE(name, ".init_array");
    EXPECT_NE(name, ".symtab");
  }
}

template <typename ElfType> void expectSegments(const std::vector<char> &bytes) {
  auto elf = llvm::cantFail(llvm::object::ELFFile<ElfType>::create(llvm::StringRef(bytes.data(), bytes.size())));
  bool relro = false;
  for (const auto &header : llvm::cantFail(elf.program_headers())) {
    if (header.p_type == llvm::ELF::PT_LOAD)
      EXPECT_GE(header.p_align, 16384u);
    EXPECT_FALSE(header.p_type == llvm::ELF::PT_LOAD && (header.p_flags & llvm::ELF::PF_W) &&
                 (header.p_flags & llvm::ELF::PF_X));
    EXPECT_FALSE(header.p_type == llvm::ELF::PT_GNU_STACK && (header.p_flags & llvm::ELF::PF_X));
    relro |= header.p_type == llvm::ELF::PT_GNU_RELRO;
  }
  EXPECT_TRUE(relro);
  bool soname = false;
  for (const auto &entry : llvm::cantFail(elf.dynamicEntries())) {
    EXPECT_NE(entry.d_tag, llvm::ELF::DT_NEEDED);
    EXPECT_NE(entry.d_tag, llvm::ELF::DT_TEXTREL);
    soname |= entry.d_tag == llvm::ELF::DT_SONAME;
  }
  EXPECT_TRUE(soname);
}

targets::BundleContents openBundle(const std::string &path) {
  std::vector<char> bytes = readFile(path);
  llvm::Expected<targets::BundleContents> bundle = targets::readBundle(bytes);
  if (bundle)
    return std::move(*bundle);
  ADD_FAILURE() << llvm::toString(bundle.takeError());
  return {};
}

TEST(AndroidSo, IsFreestandingOnEveryAbi) {
  Scratch scratch;
  build("android-so", makeFixture(), {}, scratch.path("out"));
  targets::BundleContents bundle = openBundle(scratch.path("out/fixture.vmpb"));
  std::vector<std::string> abis;
  for (const targets::BundleVariant &variant : bundle.variants) {
    SCOPED_TRACE(variant.abi);
    abis.push_back(variant.abi);
    expectFreestanding(variant.code);
    if (variant.abi == "arm64-v8a" || variant.abi == "x86_64")
      expectSegments<llvm::object::ELF64LE>(variant.code);
    else
      expectSegments<llvm::object::ELF32LE>(variant.code);
  }
  EXPECT_EQ(abis, (std::vector<std::string>{"arm64-v8a", "armeabi-v7a", "x86_64", "x86_64", "x86"}));
  EXPECT_EQ(bundle.weightsSize, makeFixture().weights.size());
}

TEST(AndroidSo, Runs) {
  Scratch scratch;
  targets::SharedModule module = makeFixture(true);
  writeFile(scratch.path("weights"), std::string(module.weights.begin(), module.weights.end()));
  build("android-so", module, {}, scratch.path("out"));
  for (const targets::BundleVariant &variant : openBundle(scratch.path("out/fixture.vmpb")).variants) {
    std::string runner = variant.abi == "arm64-v8a" ? VMPACK_RUN_AARCH64
                         : variant.abi == "x86_64"  ? VMPACK_RUN_NATIVE
                                                    : "";
    if (runner.empty())
      continue; // no 32-bit C library here
    SCOPED_TRACE(variant.abi + variant.level);
    writeFile(scratch.path("code.so"), std::string(variant.code.begin(), variant.code.end()));
    std::string arguments = scratch.path("code.so") + " vmpk_query 1 " + scratch.path("weights") + " 5";
    expectFixtureOutput(runProgram(runner, arguments, 5), 5);
  }
}

TEST(AndroidSo, WeightsBesideTheBundle) {
  Scratch scratch;
  targets::BuildOptions options;
  options.weights = targets::WeightsMode::External;
  build("android-so", makeFixture(false, 100000), options, scratch.path("out"));
  EXPECT_EQ(filesOf(scratch.path("out")), (std::vector<std::string>{"fixture.vmpb", "fixture.weights"}));
  EXPECT_EQ(openBundle(scratch.path("out/fixture.vmpb")).weightsSize, 0u);
  EXPECT_EQ(readFile(scratch.path("out/fixture.weights")).size(), makeFixture(false, 100000).weights.size());
}

TEST(Shared, SameBytesEveryTime) {
  Scratch scratch;
  for (const char *target : {"android-so", "linux-so"}) {
    for (const char *copy : {"/a", "/elsewhere"})
      build(target, makeFixture(true), {}, scratch.path(target) + copy);
    run("diff -r " + scratch.path(target) + "/a " + scratch.path(target) + "/elsewhere");
  }
}

} // namespace
