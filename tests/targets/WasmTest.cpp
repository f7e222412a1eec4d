#include "tests/targets/Fixture.h"
#include "tests/targets/Scratch.h"

#include "llvm/Object/Wasm.h"

#include <gtest/gtest.h>

using namespace vmpack;
using namespace vmpack::tests;

namespace {

const char *const runModel = R"(
const { load } = await import(process.argv[2]);
const rows = Number(process.argv[4]), data = Float32Array.from(process.argv[5].trim().split(' ').map(Number));
const model = await load({ variant: process.argv[3] });
const inputs = { x: { data, dims: [rows, 3] } };
const outputs = await model.run(inputs, { function: 'any batch' });
if (model.variant !== process.argv[3] || outputs.float.dims.join() !== `${rows},5`) process.exit(3);
console.log(Array.from(outputs.float.data, value => value.toPrecision(9)).join(' '));
)";

TEST(WebWasm, RunsInNode) {
  Scratch scratch;
  writeFile(scratch.path("run.mjs"), runModel);
  for (auto weights : {targets::WeightsMode::Embed, targets::WeightsMode::External}) {
    targets::BuildOptions options;
    options.weights = weights;
    std::string out = scratch.path(weights == targets::WeightsMode::Embed ? "embed" : "external");
    build("web-wasm", makeFixture(true), options, out);
    for (const char *variant : {"baseline", "simd128", "relaxed-simd"}) {
      SCOPED_TRACE(variant);
      std::string output = run(VMPACK_NODE " --experimental-wasm-relaxed-simd " + scratch.path("run.mjs") + " " + out +
                               "/fixture.mjs " + variant + " 6 '" + printFloats(fixtureInput(6)) + "'");
      expectFixtureOutput(parseFloats(output), 6);
    }
  }
}

TEST(WebWasm, ImportsNothingAndExportsFour) {
  Scratch scratch;
  build("web-wasm", makeFixture(), {}, scratch.path("out"));
  for (const char *variant : {"baseline", "simd128", "relaxed-simd"}) {
    std::vector<char> bytes = readFile(scratch.path("out/fixture.") + variant + ".wasm");
    auto object = llvm::cantFail(llvm::object::ObjectFile::createWasmObjectFile(
        llvm::MemoryBufferRef(llvm::StringRef(bytes.data(), bytes.size()), variant)));
    EXPECT_TRUE(object->imports().empty());
    std::vector<std::string> exports;
    for (const llvm::wasm::WasmExport &each : object->exports())
      exports.push_back(each.Name.str());
    llvm::sort(exports);
    EXPECT_EQ(exports, (std::vector<std::string>{"__heap_base", "__indirect_function_table", "memory", "vmpk_query"}));
  }
}

TEST(WebSide, HasNoPointersInData) {
  Scratch scratch;
  build("web-side", makeFixture(true), {}, scratch.path("out"));
  for (const char *variant : {"baseline", "simd128"}) {
    std::vector<char> bytes = readFile(scratch.path("out/fixture.") + variant + ".wasm");
    auto object = llvm::cantFail(llvm::object::ObjectFile::createWasmObjectFile(
        llvm::MemoryBufferRef(llvm::StringRef(bytes.data(), bytes.size()), variant)));
    for (const llvm::wasm::WasmImport &each : object->imports())
      EXPECT_EQ(each.Module, "env") << each.Field.str();
    // wasm-ld would make __wasm_apply_data_relocs do something, which old loaders do not call
    for (const llvm::wasm::WasmExport &each : object->exports())
      EXPECT_NE(each.Name, "__wasm_apply_data_relocs");
  }
}

TEST(Web, SameBytesEveryTime) {
  Scratch scratch;
  for (const char *target : {"web-wasm", "web-side"}) {
    for (const char *copy : {"/a", "/elsewhere"})
      build(target, makeFixture(true), {}, scratch.path(target) + copy);
    run("diff -r " + scratch.path(target) + "/a " + scratch.path(target) + "/elsewhere");
  }
}

} // namespace
