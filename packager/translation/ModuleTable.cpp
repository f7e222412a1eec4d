//===- ModuleTable.cpp - the module table's writer ------------------------------------------------------===//
//
//   header | functions | dispatches | per function: dims, inputs, outputs, their dim entries | texts
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/translation/ModuleTable.h"

#include "vmpk/abi.h"

#include <cstring>
#include <string_view>

namespace vmpack::translation {
namespace {

/// Appends arrays to a growing table; an array is reserved first and filled row by row.
class TableWriter {
public:
  template <typename Row> vmpk_span_t reserve(size_t count) {
    bytes.resize((bytes.size() + 7) / 8 * 8);
    vmpk_span_t span{uint32_t(bytes.size()), uint32_t(count)};
    bytes.resize(bytes.size() + count * sizeof(Row));
    return span;
  }
  template <typename Row> void set(vmpk_span_t span, size_t index, const Row &row) {
    std::memcpy(bytes.data() + span.offset + index * sizeof(Row), &row, sizeof(Row));
  }
  vmpk_span_t text(std::string_view value) {
    vmpk_span_t span{uint32_t(bytes.size()), uint32_t(value.size())};
    bytes.insert(bytes.end(), value.begin(), value.end());
    return span;
  }
  vmpk_span_t tensors(const std::vector<targets::Tensor> &tensors) {
    vmpk_span_t rows = reserve<vmpk_table_tensor_t>(tensors.size());
    for (size_t index = 0; index < tensors.size(); ++index) {
      const targets::Tensor &tensor = tensors[index];
      vmpk_table_tensor_t row{};
      row.dims = reserve<int64_t>(tensor.dims.size());
      for (size_t dim = 0; dim < tensor.dims.size(); ++dim)
        set(row.dims, dim, tensor.dims[dim]);
      row.name = text(tensor.name);
      row.dtype = tensor.dtype;
      set(rows, index, row);
    }
    return rows;
  }

  std::vector<uint8_t> bytes;
};

} // namespace

std::vector<uint8_t> makeModuleTable(const targets::SharedModule &module) {
  TableWriter writer;
  vmpk_span_t headerSpan = writer.reserve<vmpk_table_header_t>(1);
  vmpk_table_header_t header{};
  std::memcpy(header.magic, VMPK_TABLE_MAGIC, sizeof header.magic);
  header.size = sizeof header;
  header.abi_version = VMPK_ABI_VERSION;
  std::memcpy(header.digest, module.digest.data(), sizeof header.digest);
  std::memcpy(header.weights_digest, module.weightsDigest.data(), sizeof header.weights_digest);
  header.weights_size = module.weights.size();
  header.function_size = sizeof(vmpk_table_function_t);
  header.dispatch_size = sizeof(vmpk_table_dispatch_t);
  header.import_size = sizeof(vmpk_table_import_t);
  header.tensor_size = sizeof(vmpk_table_tensor_t);
  header.dim_size = sizeof(vmpk_table_dim_t);
  header.name = writer.text(module.name);

  header.functions = writer.reserve<vmpk_table_function_t>(module.functions.size());
  for (size_t index = 0; index < module.functions.size(); ++index) {
    const targets::Function &function = module.functions[index];
    vmpk_table_function_t row{};
    row.dims = writer.reserve<vmpk_table_dim_t>(function.dims.size());
    for (size_t dim = 0; dim < function.dims.size(); ++dim)
      writer.set(row.dims, dim,
                 vmpk_table_dim_t{writer.text(function.dims[dim].name), function.dims[dim].minimum,
                                  function.dims[dim].maximum});
    row.inputs = writer.tensors(function.inputs);
    row.outputs = writer.tensors(function.outputs);
    row.name = writer.text(function.name);
    row.arena_size = function.arenaSize;
    writer.set(header.functions, index, row);
  }
  header.dispatches = writer.reserve<vmpk_table_dispatch_t>(module.dispatches.size());
  for (size_t index = 0; index < module.dispatches.size(); ++index) {
    const targets::Dispatch &dispatch = module.dispatches[index];
    writer.set(header.dispatches, index,
               vmpk_table_dispatch_t{writer.text(dispatch.name), writer.text(dispatch.location), dispatch.flops,
                                     dispatch.bytes});
  }
  header.imports = writer.reserve<vmpk_table_import_t>(0);
  writer.reserve<uint64_t>(0); // the table's size is a multiple of 8
  header.table_size = writer.bytes.size();
  writer.set(headerSpan, 0, header);
  return writer.bytes;
}

} // namespace vmpack::translation
