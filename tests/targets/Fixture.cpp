#include "tests/targets/Fixture.h"

#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IRReader/IRReader.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/SourceMgr.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstdlib>
#include <cstring>
#include <gtest/gtest.h>

using namespace llvm;
using namespace vmpack::targets;

namespace vmpack::tests {
namespace {

constexpr size_t inner = 3, columns = 5;

float weightAt(size_t k, size_t n) { return 0.25f * static_cast<float>(k) - 0.125f * static_cast<float>(n); }
float biasAt(size_t n) { return 0.5f - 0.0625f * static_cast<float>(n); }

/// What the translation does to clang's output: nothing may be left that names a machine.
std::vector<char> portableBitcode() {
  LLVMContext context;
  SMDiagnostic diagnostic;
  std::unique_ptr<Module> module = parseIRFile(VMPACK_FIXTURE_BITCODE, diagnostic, context);
  if (!module) {
    ADD_FAILURE() << diagnostic.getMessage().str();
    return {};
  }
  module->setTargetTriple(Triple());
  module->setDataLayout("");
  SmallVector<NamedMDNode *> metadata(make_pointer_range(module->named_metadata()));
  for (NamedMDNode *node : metadata)
    module->eraseNamedMetadata(node);
  for (llvm::Function &function : *module)
    for (StringRef attribute : {"target-cpu", "target-features", "tune-cpu"})
      function.removeFnAttr(attribute);
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  WriteBitcodeToFile(*module, stream);
  return std::vector<char>(bytes.begin(), bytes.end());
}

decltype(SharedModule::weights) packedWeights(size_t extra) {
  std::vector<float> packed((inner + 1) * 16, 0.0f);
  for (size_t n = 0; n < columns; ++n) {
    for (size_t k = 0; k < inner; ++k)
      packed[k * 16 + n] = weightAt(k, n);
    packed[inner * 16 + n] = biasAt(n);
  }
  decltype(SharedModule::weights) bytes(packed.size() * sizeof(float) + extra);
  std::memcpy(bytes.data(), packed.data(), packed.size() * sizeof(float));
  for (size_t i = 0; i < extra; ++i) // not compressible, not periodic
    bytes[packed.size() * sizeof(float) + i] = static_cast<uint8_t>((i * 2654435761u) >> 13);
  return bytes;
}

/// Appends structs and text to a table; offsets are from its start.
class TableWriter {
public:
  std::vector<uint8_t> bytes;

  template <typename T> vmpk_span_t append(ArrayRef<T> values) {
    bytes.resize(alignTo(bytes.size(), 8));
    vmpk_span_t span{static_cast<uint32_t>(bytes.size()), static_cast<uint32_t>(values.size())};
    const auto *raw = reinterpret_cast<const uint8_t *>(values.data());
    bytes.insert(bytes.end(), raw, raw + values.size() * sizeof(T));
    return span;
  }
  vmpk_span_t text(StringRef text) { return append(ArrayRef<char>(text.data(), text.size())); }

  vmpk_span_t tensor(const Tensor &tensor) {
    vmpk_table_tensor_t row{};
    row.name = text(tensor.name);
    row.dims = append(ArrayRef<int64_t>(tensor.dims));
    row.dtype = tensor.dtype;
    return append(ArrayRef<vmpk_table_tensor_t>(row));
  }
};

std::vector<uint8_t> makeTable(const SharedModule &module) {
  TableWriter writer;
  writer.bytes.resize(sizeof(vmpk_table_header_t));
  vmpk_table_header_t header{};
  std::memcpy(header.magic, VMPK_TABLE_MAGIC, sizeof(header.magic));
  header.size = sizeof(header);
  header.abi_version = VMPK_ABI_VERSION;
  std::copy(module.digest.begin(), module.digest.end(), header.digest);
  std::copy(module.weightsDigest.begin(), module.weightsDigest.end(), header.weights_digest);
  header.weights_size = module.weights.size();
  header.name = writer.text(module.name);
  std::vector<vmpk_table_function_t> functions;
  for (const targets::Function &function : module.functions) {
    std::vector<vmpk_table_dim_t> dims;
    for (const Dim &dim : function.dims)
      dims.push_back({writer.text(dim.name), dim.minimum, dim.maximum});
    vmpk_table_function_t row{};
    row.name = writer.text(function.name);
    row.dims = writer.append(ArrayRef<vmpk_table_dim_t>(dims));
    row.inputs = writer.tensor(function.inputs[0]);
    row.outputs = writer.tensor(function.outputs[0]);
    row.arena_size = function.arenaSize;
    functions.push_back(row);
  }
  header.functions = writer.append(ArrayRef<vmpk_table_function_t>(functions));
  std::vector<vmpk_table_dispatch_t> dispatches;
  for (const Dispatch &dispatch : module.dispatches)
    dispatches.push_back({writer.text(dispatch.name), writer.text(dispatch.location), dispatch.flops, dispatch.bytes});
  header.dispatches = writer.append(ArrayRef<vmpk_table_dispatch_t>(dispatches));
  header.function_size = sizeof(vmpk_table_function_t);
  header.dispatch_size = sizeof(vmpk_table_dispatch_t);
  header.import_size = sizeof(vmpk_table_import_t);
  header.tensor_size = sizeof(vmpk_table_tensor_t);
  header.dim_size = sizeof(vmpk_table_dim_t);
  writer.bytes.resize(alignTo(writer.bytes.size(), 8));
  header.table_size = writer.bytes.size();
  std::memcpy(writer.bytes.data(), &header, sizeof(header));
  return writer.bytes;
}

} // namespace

SharedModule makeFixture(bool dynamic, size_t extraWeights) {
  SharedModule module;
  module.name = "fixture";
  module.bitcode = portableBitcode();
  module.weights = packedWeights(extraWeights);
  module.digest =
      SHA256::hash(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(module.bitcode.data()), module.bitcode.size()));
  module.weightsDigest = SHA256::hash(module.weights);
  targets::Function forward;
  forward.name = "forward";
  forward.inputs = {{"x", VMPK_DTYPE_F32, {4, static_cast<int64_t>(inner)}}};
  forward.outputs = {{"float", VMPK_DTYPE_F32, {4, static_cast<int64_t>(columns)}}};
  forward.arenaSize = 128 + 2 * 128;
  module.functions.push_back(forward);
  if (dynamic) {
    forward.name = "any batch";
    forward.dims = {{"batch", 1, 1000}};
    forward.inputs[0].dims[0] = forward.outputs[0].dims[0] = -1;
    forward.arenaSize = UINT64_MAX;
    module.functions.push_back(forward);
  }
  module.dispatches = {{"gemm_0", "MatMul_0+Add_1", 0, 0}, {"exp_1", "Exp_2", 0, 0}};
  module.table = makeTable(module);
  return module;
}

std::vector<float> fixtureInput(size_t rows) {
  std::vector<float> input(rows * inner);
  for (size_t i = 0; i < input.size(); ++i)
    input[i] = 0.1f * static_cast<float>(i % 17) - 0.7f;
  return input;
}

std::vector<float> fixtureOutput(size_t rows) {
  std::vector<float> input = fixtureInput(rows), output(rows * columns);
  for (size_t i = 0; i < rows; ++i)
    for (size_t n = 0; n < columns; ++n) {
      double sum = biasAt(n);
      for (size_t k = 0; k < inner; ++k)
        sum += static_cast<double>(input[i * inner + k]) * weightAt(k, n);
      output[i * columns + n] = static_cast<float>(std::exp(sum));
    }
  return output;
}

void expectFixtureOutput(const std::vector<float> &actual, size_t rows) {
  std::vector<float> expected = fixtureOutput(rows);
  ASSERT_EQ(actual.size(), expected.size());
  for (size_t i = 0; i < expected.size(); ++i)
    ASSERT_NEAR(actual[i], expected[i], 1e-5 + 1e-5 * std::fabs(expected[i])) << "element " << i;
}

std::vector<float> runQuery(vmpk_query_fn query, size_t rows, uint32_t function, const vmpk_host_t *host,
                            const uint8_t *weights) {
  vmpk_entry_t entry{};
  entry.size = sizeof(entry);
  EXPECT_EQ(query(VMPK_ABI_VERSION, &entry), VMPK_STATUS_OK);
  auto dim = static_cast<int64_t>(rows);
  vmpk_measured_t measured{};
  measured.size = sizeof(measured);
  EXPECT_EQ(entry.measure(function, &dim, &measured), VMPK_STATUS_OK);
  std::vector<float> input = fixtureInput(rows), output(rows * columns, -1.0f);
  std::unique_ptr<uint8_t, decltype(&std::free)> arena(
      static_cast<uint8_t *>(std::aligned_alloc(VMPK_ALIGNMENT, alignTo(measured.arena_size, VMPK_ALIGNMENT))),
      &std::free);
  vmpk_buffer_t in{}, out{};
  in.data = input.data();
  in.size = input.size() * sizeof(float);
  out.data = output.data();
  out.size = output.size() * sizeof(float);
  vmpk_call_t call{};
  call.size = sizeof(call);
  call.function = function;
  call.host = host;
  call.arena = arena.get();
  call.arena_size = measured.arena_size;
  call.weights = weights ? weights : entry.weights;
  call.dims = &dim;
  call.inputs = &in;
  call.outputs = &out;
  EXPECT_EQ(entry.invoke(&call), VMPK_STATUS_OK);
  return output;
}

} // namespace vmpack::tests
