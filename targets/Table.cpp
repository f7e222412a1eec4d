#include "targets/Table.h"

#include "vmpk/abi.h"

#include "llvm/ADT/StringRef.h"

#include <cstring>

using namespace llvm;

namespace vmpack::targets {
namespace {

/// Reads spans of a table; the first thing wrong is kept and everything after reads as empty.
class TableReader {
public:
  explicit TableReader(ArrayRef<char> table) : table(table) {}

  /// The `index`-th element of `span`, whose elements are `stride` bytes apart in this table; later fields of a newer
  /// table are skipped and those that an older one lacks are zero.
  template <typename T> T element(vmpk_span_t span, uint32_t stride, uint32_t index, const char *what) {
    T value{};
    uint64_t offset = span.offset + static_cast<uint64_t>(stride) * index;
    if (check(stride != 0 && offset % 8 == 0 && offset + stride <= table.size(), what))
      std::memcpy(&value, table.data() + offset, std::min<size_t>(stride, sizeof(T)));
    return value;
  }

  /// Whether all of `span` is inside, so that a loop over it is bounded by the file's size.
  uint32_t count(vmpk_span_t span, uint32_t stride, const char *what) {
    bool inside =
        span.offset + static_cast<uint64_t>(stride) * span.count <= table.size() && (span.count == 0 || stride);
    return check(inside, what) ? span.count : 0;
  }

  std::string text(vmpk_span_t span, const char *what) {
    if (!check(static_cast<uint64_t>(span.offset) + span.count <= table.size(), what))
      return {};
    return std::string(table.data() + span.offset, span.count);
  }

  bool check(bool condition, const char *what) {
    if (!condition && problem.empty())
      problem = what;
    return condition && problem.empty();
  }

  std::string problem;

private:
  ArrayRef<char> table;
};

Tensor readTensor(TableReader &reader, const vmpk_table_tensor_t &row, size_t dimCount) {
  Tensor tensor;
  tensor.name = reader.text(row.name, "a tensor's name");
  tensor.dtype = row.dtype;
  reader.check(row.dtype >= VMPK_DTYPE_F32 && row.dtype <= VMPK_DTYPE_BOOL, "a tensor's dtype");
  uint32_t rank = reader.count(row.dims, sizeof(int64_t), "a tensor's dims");
  reader.check(rank <= VMPK_MAX_RANK, "a tensor's rank");
  for (uint32_t axis = 0; axis < rank && reader.problem.empty(); ++axis) {
    auto dim = reader.element<int64_t>(row.dims, sizeof(int64_t), axis, "a tensor's dims");
    bool known = dim >= 0 || dim == VMPK_DIM_COMPUTED || static_cast<uint64_t>(-1 - dim) < dimCount;
    reader.check(known, "a tensor's symbolic dim");
    tensor.dims.push_back(dim);
  }
  return tensor;
}

Function readFunction(TableReader &reader, const vmpk_table_function_t &row, const vmpk_table_header_t &header) {
  Function function;
  function.name = reader.text(row.name, "a function's name");
  function.arenaSize = row.arena_size;
  uint32_t count = reader.count(row.dims, header.dim_size, "a function's dims");
  for (uint32_t i = 0; i < count && reader.problem.empty(); ++i) {
    auto dim = reader.element<vmpk_table_dim_t>(row.dims, header.dim_size, i, "a function's dims");
    function.dims.push_back({reader.text(dim.name, "a dim's name"), dim.minimum, dim.maximum});
  }
  auto readTensors = [&](vmpk_span_t span, std::vector<Tensor> &tensors, const char *what) {
    uint32_t tensorCount = reader.count(span, header.tensor_size, what);
    for (uint32_t i = 0; i < tensorCount && reader.problem.empty(); ++i)
      tensors.push_back(readTensor(reader, reader.element<vmpk_table_tensor_t>(span, header.tensor_size, i, what),
                                   function.dims.size()));
  };
  readTensors(row.inputs, function.inputs, "a function's inputs");
  readTensors(row.outputs, function.outputs, "a function's outputs");
  return function;
}

} // namespace

Expected<Manifest> readTable(ArrayRef<char> bytes) {
  auto corrupt = [](const Twine &what) {
    return createStringError("the module table is corrupt: " + what + " is wrong");
  };
  vmpk_table_header_t header{};
  if (bytes.size() < offsetof(vmpk_table_header_t, digest) ||
      std::memcmp(bytes.data(), VMPK_TABLE_MAGIC, sizeof(header.magic)) != 0)
    return corrupt("its magic");
  std::memcpy(&header, bytes.data(), std::min(bytes.size(), sizeof(header)));
  if (header.table_size > bytes.size() || header.table_size > UINT32_MAX)
    return corrupt("its size");
  if (header.size < sizeof(header) || header.size > header.table_size)
    return corrupt("its header's size");
  TableReader reader(bytes.take_front(header.table_size));
  Manifest manifest;
  manifest.abiVersion = header.abi_version;
  std::memcpy(manifest.digest.data(), header.digest, sizeof(header.digest));
  std::memcpy(manifest.weightsDigest.data(), header.weights_digest, sizeof(header.weights_digest));
  manifest.weightsSize = header.weights_size;
  manifest.stackSize = header.stack_size;
  manifest.name = reader.text(header.name, "the module's name");
  uint32_t functions = reader.count(header.functions, header.function_size, "the list of functions");
  for (uint32_t i = 0; i < functions && reader.problem.empty(); ++i)
    manifest.functions.push_back(readFunction(
        reader,
        reader.element<vmpk_table_function_t>(header.functions, header.function_size, i, "the list of functions"),
        header));
  uint32_t dispatches = reader.count(header.dispatches, header.dispatch_size, "the list of dispatches");
  for (uint32_t i = 0; i < dispatches && reader.problem.empty(); ++i) {
    auto row =
        reader.element<vmpk_table_dispatch_t>(header.dispatches, header.dispatch_size, i, "the list of dispatches");
    manifest.dispatches.push_back({reader.text(row.name, "a dispatch's name"),
                                   reader.text(row.location, "a dispatch's location"), row.flops, row.bytes});
  }
  if (!reader.problem.empty())
    return corrupt(reader.problem);
  return manifest;
}

Expected<std::optional<Manifest>> findTable(ArrayRef<char> file) {
  StringRef contents(file.data(), file.size());
  std::optional<std::string> problem;
  for (size_t at = contents.find(VMPK_TABLE_MAGIC); at != StringRef::npos;
       at = contents.find(VMPK_TABLE_MAGIC, at + 1)) {
    Expected<Manifest> manifest = readTable(file.drop_front(at));
    if (manifest)
      return std::optional<Manifest>(std::move(*manifest));
    problem = toString(manifest.takeError());
  }
  if (problem)
    return createStringError(*problem);
  return std::optional<Manifest>();
}

} // namespace vmpack::targets
