//===- Inputs.cpp - the inputs of a run, from files and from the seed -----------------------------------===//
#include "packager/tool/Inputs.h"

#include "packager/tool/Errors.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <optional>

using namespace llvm;

namespace vmpack::tool {
namespace {

/// The symbolic dim that a dim entry of the signature stands for.
std::optional<size_t> symbol(int64_t entry) {
  return entry < 0 && entry != INT64_MIN ? std::optional<size_t>(static_cast<size_t>(-1 - entry)) : std::nullopt;
}

std::string inputNames(const targets::Function &signature) {
  return join(map_range(signature.inputs, [](const targets::Tensor &input) { return "'" + input.name + "'"; }), ", ");
}

Error readInputs(const targets::Function &signature, const Options &options, std::vector<std::optional<Tensor>> &read) {
  for (auto &[name, file] : options.inputs) {
    auto input = find_if(signature.inputs, [&](const targets::Tensor &tensor) { return tensor.name == name; });
    if (input == signature.inputs.end())
      return userError("no input '" + name + "'; there are " + inputNames(signature));
    auto tensor = readTensor(file);
    if (!tensor)
      return tensor.takeError();
    auto &place = read[static_cast<size_t>(input - signature.inputs.begin())];
    if (place)
      return userError("input '" + name + "' is given twice");
    place = std::move(*tensor);
    place->name = name;
  }
  return Error::success();
}

/// A value for each symbolic dim that inputs from the seed may need.
std::vector<int64_t> chooseDims(const targets::Function &signature, const Options &options,
                                ArrayRef<std::optional<Tensor>> read) {
  std::vector<int64_t> values;
  for (const targets::Dim &dim : signature.dims) {
    auto asked = options.dims.find(dim.name);
    values.push_back(asked != options.dims.end() ? asked->second.first : std::max<int64_t>(dim.minimum, 1));
  }
  for (auto [input, tensor] : zip(signature.inputs, read))
    if (tensor && tensor->dims.size() == input.dims.size())
      for (auto [entry, size] : zip(input.dims, tensor->dims))
        if (auto index = symbol(entry); index && *index < values.size())
          values[*index] = size;
  return values;
}

} // namespace

Expected<std::vector<Tensor>> gatherInputs(const targets::Function &signature, const Options &options) {
  std::vector<std::optional<Tensor>> read(signature.inputs.size());
  if (Error error = readInputs(signature, options, read))
    return error;
  std::vector<int64_t> values = chooseDims(signature, options, read);
  std::vector<Tensor> inputs;
  for (auto [ordinal, input] : enumerate(signature.inputs)) {
    if (read[ordinal]) {
      inputs.push_back(std::move(*read[ordinal]));
      continue;
    }
    std::vector<int64_t> dims = input.dims;
    for (int64_t &dim : dims)
      if (auto index = symbol(dim); index && *index < values.size())
        dim = values[*index];
    auto tensor = seededTensor(input.name, input.dtype, dims, options.seed, ordinal);
    if (!tensor)
      return tensor.takeError();
    inputs.push_back(std::move(*tensor));
  }
  return inputs;
}

} // namespace vmpack::tool
