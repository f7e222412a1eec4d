//===- Inspect.cpp - `vmpack inspect` ---------------------------------------------------------------------===//
#include "packager/tool/Driver.h"
#include "packager/tool/Tensors.h"

#include "vmpk/abi.h"

#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Format.h"
#include "llvm/Support/JSON.h"

using namespace llvm;

namespace vmpack::tool {
namespace {

/// A dim entry in words: a size, a symbol's name or "?" for what measure computes.
std::string dimText(const targets::Function &function, int64_t entry) {
  if (entry >= 0)
    return std::to_string(entry);
  size_t symbol = static_cast<size_t>(-1 - entry);
  return entry == VMPK_DIM_COMPUTED || symbol >= function.dims.size() ? "?" : function.dims[symbol].name;
}

std::string typeText(const targets::Function &function, const targets::Tensor &tensor) {
  auto dims = map_range(tensor.dims, [&](int64_t entry) { return dimText(function, entry); });
  return (dtypeName(tensor.dtype) + "[" + join(dims, ", ") + "]").str();
}

std::string boundsText(const targets::Dim &dim) {
  return std::to_string(dim.minimum) + ".." + (dim.maximum == INT64_MAX ? "" : std::to_string(dim.maximum));
}

void printFunction(const targets::Function &function, raw_ostream &out) {
  out << "function " << function.name << "\n";
  for (const targets::Dim &dim : function.dims)
    out << "  dim     " << dim.name << ": " << boundsText(dim) << "\n";
  for (const targets::Tensor &tensor : function.inputs)
    out << "  input   " << tensor.name << ": " << typeText(function, tensor) << "\n";
  for (const targets::Tensor &tensor : function.outputs)
    out << "  output  " << tensor.name << ": " << typeText(function, tensor) << "\n";
  out << "  arena   ";
  if (function.arenaSize == UINT64_MAX)
    out << "depends on the dims\n";
  else
    out << function.arenaSize << " bytes\n";
}

void writeTensors(json::OStream &json, StringRef key, const targets::Function &function,
                  ArrayRef<targets::Tensor> tensors) {
  json.attributeArray(key, [&] {
    for (const targets::Tensor &tensor : tensors)
      json.object([&] {
        json.attribute("name", tensor.name);
        json.attribute("dtype", dtypeName(tensor.dtype));
        json.attributeArray("dims", [&] {
          for (int64_t entry : tensor.dims)
            entry >= 0 ? json.value(entry) : json.value(dimText(function, entry));
        });
      });
  });
}

void writeFunction(json::OStream &json, const targets::Function &function) {
  json.object([&] {
    json.attribute("name", function.name);
    json.attributeArray("dims", [&] {
      for (const targets::Dim &dim : function.dims)
        json.object([&] {
          json.attribute("name", dim.name);
          json.attribute("minimum", dim.minimum);
          json.attribute("maximum", dim.maximum == INT64_MAX ? json::Value(nullptr) : json::Value(dim.maximum));
        });
    });
    writeTensors(json, "inputs", function, function.inputs);
    writeTensors(json, "outputs", function, function.outputs);
    json.attribute("arena_bytes",
                   function.arenaSize == UINT64_MAX ? json::Value(nullptr) : json::Value(int64_t(function.arenaSize)));
  });
}

void printModel(const targets::SharedModule &module, raw_ostream &out) {
  out << "module " << module.name << "\n";
  for (const targets::Function &function : module.functions)
    printFunction(function, out);
  out << "dispatches      " << module.dispatches.size() << "\n";
  out << "shared module   " << module.bitcode.size() << " bytes, sha256 " << toHex(module.digest, true) << "\n";
  out << "weights         " << module.weights.size() << " bytes, sha256 " << toHex(module.weightsDigest, true) << "\n";
  out << "module table    " << module.table.size() << " bytes\n";
}

void writeModel(const targets::SharedModule &module, raw_ostream &out) {
  json::OStream json(out, 1);
  json.object([&] {
    json.attribute("kind", "model");
    json.attribute("name", module.name);
    json.attributeArray("functions", [&] {
      for (const targets::Function &function : module.functions)
        writeFunction(json, function);
    });
    json.attribute("dispatches", static_cast<int64_t>(module.dispatches.size()));
    json.attribute("digest", toHex(module.digest, true));
    json.attribute("weights_digest", toHex(module.weightsDigest, true));
    json.attributeObject("sections", [&] {
      json.attribute("shared_module", static_cast<int64_t>(module.bitcode.size()));
      json.attribute("weights", static_cast<int64_t>(module.weights.size()));
      json.attribute("table", static_cast<int64_t>(module.table.size()));
    });
  });
  out << "\n";
}

} // namespace

Error inspect(const Options &options, raw_ostream &out) {
  Compiler compiler(stationLog(options), options.verbose);
  const std::string &path = options.models.front();
  auto module = compiler.compile({path, moduleName(path), options.dims});
  if (!module)
    return module.takeError();
  options.json ? writeModel(*module, out) : printModel(*module, out);
  return Error::success();
}

} // namespace vmpack::tool
