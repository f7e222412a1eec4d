#include "targets/Inspect.h"
#include "tests/targets/Fixture.h"
#include "tests/targets/Scratch.h"

#include <cstring>
#include <gtest/gtest.h>

using namespace vmpack;
using namespace vmpack::tests;

namespace {

llvm::ArrayRef<char> tableOf(const targets::SharedModule &module) {
  return llvm::ArrayRef<char>(reinterpret_cast<const char *>(module.table.data()), module.table.size());
}

void expectManifest(const targets::Manifest &manifest, const targets::SharedModule &module) {
  EXPECT_EQ(manifest.name, module.name);
  EXPECT_EQ(manifest.digest, module.digest);
  EXPECT_EQ(manifest.weightsDigest, module.weightsDigest);
  EXPECT_EQ(manifest.weightsSize, module.weights.size());
  ASSERT_EQ(manifest.functions.size(), module.functions.size());
  for (size_t i = 0; i < module.functions.size(); ++i) {
    const targets::Function &read = manifest.functions[i], &written = module.functions[i];
    EXPECT_EQ(read.name, written.name);
    EXPECT_EQ(read.arenaSize, written.arenaSize);
    EXPECT_EQ(read.dims.size(), written.dims.size());
    ASSERT_EQ(read.inputs.size(), 1u);
    EXPECT_EQ(read.inputs[0].name, written.inputs[0].name);
    EXPECT_EQ(read.inputs[0].dims, written.inputs[0].dims);
    EXPECT_EQ(read.outputs[0].dtype, written.outputs[0].dtype);
  }
  ASSERT_EQ(manifest.dispatches.size(), 2u);
  EXPECT_EQ(manifest.dispatches[0].location, "MatMul_0+Add_1");
}

TEST(Table, ReadsBackWhatWasWritten) {
  targets::SharedModule module = makeFixture(true);
  llvm::Expected<targets::Manifest> manifest = targets::readTable(tableOf(module));
  ASSERT_TRUE(static_cast<bool>(manifest)) << llvm::toString(manifest.takeError());
  expectManifest(*manifest, module);
  EXPECT_EQ(manifest->functions[1].dims[0].name, "batch");
  EXPECT_EQ(manifest->functions[1].dims[0].maximum, 1000);
}

TEST(Table, SurvivesTruncationAndEveryFlippedByte) {
  targets::SharedModule module = makeFixture(true);
  std::vector<char> table(tableOf(module).begin(), tableOf(module).end());
  for (size_t size = 0; size < table.size(); ++size)
    EXPECT_TRUE(llvm::errorToBool(targets::readTable(llvm::ArrayRef<char>(table).take_front(size)).takeError()))
        << size;
  for (size_t i = 0; i < table.size(); ++i)
    for (int mask : {0xff, 0x80, 0x01}) {
      std::vector<char> flipped = table;
      flipped[i] = static_cast<char>(flipped[i] ^ mask);
      llvm::consumeError(targets::readTable(flipped).takeError()); // any answer, no crash
    }
}

TEST(Inspect, SeesThroughEveryFormat) {
  Scratch scratch;
  targets::SharedModule module = makeFixture(true);
  struct Case {
    const char *target, *file, *kind;
    size_t parts;
  };
  const Case cases[] = {{"android-so", "fixture.vmpb", "bundle", 5},
                        {"linux-so", "fixture.x86-64-v2.so", "shared object", 1},
                        {"linux-static", "x86-64-v2/libfixture.a", "archive", 1},
                        {"ios-static", "ios-arm64/libfixture.a", "archive", 1},
                        {"ios-static", "ios-arm64_x86_64-simulator/libfixture.a", "fat archive", 2},
                        {"object", "fixture.o", "object", 1},
                        {"web-side", "fixture.simd128.wasm", "wasm module", 1},
                        {"web-static", "", "folder", 2}};
  for (const Case &each : cases) {
    SCOPED_TRACE(std::string(each.target) + "/" + each.file);
    if (filesOf(scratch.path(each.target)).empty())
      build(each.target, module, {}, scratch.path(each.target));
    llvm::Expected<targets::Inspection> inspection = targets::inspect(scratch.path(each.target) + "/" + each.file);
    ASSERT_TRUE(static_cast<bool>(inspection)) << llvm::toString(inspection.takeError());
    EXPECT_EQ(inspection->kind, each.kind);
    ASSERT_EQ(inspection->parts.size(), each.parts);
    for (const targets::InspectedPart &part : inspection->parts) {
      ASSERT_TRUE(part.manifest);
      expectManifest(*part.manifest, module);
      EXPECT_GT(part.manifest->stackSize, 0u);
      EXPECT_FALSE(part.sections.empty());
    }
  }
}

TEST(Inspect, RefusesDamagedBundles) {
  Scratch scratch;
  build("android-so", makeFixture(), {}, scratch.path("out"));
  std::vector<char> bundle = readFile(scratch.path("out/fixture.vmpb"));
  auto inspectBytes = [&](const std::vector<char> &bytes) {
    writeFile(scratch.path("damaged.vmpb"), std::string(bytes.begin(), bytes.end()));
    return targets::inspect(scratch.path("damaged.vmpb"));
  };
  for (size_t size = 0; size < bundle.size(); size += bundle.size() / 50)
    EXPECT_TRUE(llvm::errorToBool(inspectBytes({bundle.begin(), bundle.begin() + size}).takeError())) << size;
  for (size_t at = 0; at < bundle.size(); at += 331) { // padding may change unnoticed; nothing may crash
    std::vector<char> flipped = bundle;
    flipped[at] = static_cast<char>(~flipped[at]);
    llvm::consumeError(inspectBytes(flipped).takeError());
  }
  std::vector<char> damaged = bundle;
  damaged[bundle.size() * 3 / 4] ^= 1;
  EXPECT_NE(llvm::toString(inspectBytes(damaged).takeError()).find("the bundle is corrupt"), std::string::npos);
}

TEST(Inspect, SaysWhatIsWrong) {
  Scratch scratch;
  auto problem = [](const std::string &path) { return llvm::toString(targets::inspect(path).takeError()); };
  writeFile(scratch.path("page.wasm"), "<!DOCTYPE html>");
  EXPECT_NE(problem(scratch.path("page.wasm")).find("it begins with 3c21444f"), std::string::npos);
  EXPECT_NE(problem(scratch.path("absent")).find("cannot read '"), std::string::npos);
  writeFile(scratch.path("empty"), "");
  EXPECT_NE(problem(scratch.path("empty")).find("it begins with nothing"), std::string::npos);
}

} // namespace
