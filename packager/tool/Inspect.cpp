//===- Inspect.cpp - `vmpack inspect` ---------------------------------------------------------------------===//
#include "packager/tool/Driver.h"
#include "packager/tool/FileKind.h"
#include "packager/tool/Tensors.h"

#include "targets/Inspect.h"
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

/// What a model and each part of an artifact have in common.
template <typename Module> void printModule(const Module &module, uint64_t weightsSize, raw_ostream &out) {
  out << "module " << module.name << "\n";
  for (const targets::Function &function : module.functions)
    printFunction(function, out);
  out << "dispatches      " << module.dispatches.size() << "\n";
  out << "shared module   sha256 " << toHex(module.digest, true) << "\n";
  out << "weights         " << weightsSize << " bytes, sha256 " << toHex(module.weightsDigest, true) << "\n";
}

template <typename Module> void writeModule(json::OStream &json, const Module &module, uint64_t weightsSize) {
  json.attribute("name", module.name);
  json.attributeArray("functions", [&] {
    for (const targets::Function &function : module.functions)
      writeFunction(json, function);
  });
  json.attribute("dispatches", static_cast<int64_t>(module.dispatches.size()));
  json.attribute("digest", toHex(module.digest, true));
  json.attribute("weights_digest", toHex(module.weightsDigest, true));
  json.attribute("weights_bytes", static_cast<int64_t>(weightsSize));
}

void writeSections(json::OStream &json, ArrayRef<targets::SectionSize> sections) {
  json.attributeObject("sections", [&] {
    for (const targets::SectionSize &section : sections)
      json.attribute(section.name, static_cast<int64_t>(section.size));
  });
}

void printSections(ArrayRef<targets::SectionSize> sections, raw_ostream &out) {
  for (const targets::SectionSize &section : sections)
    out << format("%14llu  ", static_cast<unsigned long long>(section.size)) << section.name << "\n";
}

Error inspectModel(const Options &options, raw_ostream &out) {
  Compiler compiler(stationLog(options), options.verbose);
  const std::string &path = options.models.front();
  auto module = compiler.compile({path, moduleName(path), options.dims, options.winograd});
  if (!module)
    return module.takeError();
  targets::SectionSize sections[] = {
      {"shared module", module->bitcode.size()}, {"weights", module->weights.size()}, {"table", module->table.size()}};
  if (!options.json) {
    printModule(*module, module->weights.size(), out);
    printSections(sections, out);
    return Error::success();
  }
  json::OStream json(out, 1);
  json.object([&] {
    json.attribute("kind", "model");
    writeModule(json, *module, module->weights.size());
    writeSections(json, sections);
  });
  out << "\n";
  return Error::success();
}

void printArtifact(const targets::Inspection &artifact, raw_ostream &out) {
  out << artifact.kind << ", " << artifact.size << " bytes\n";
  printSections(artifact.sections, out);
  const targets::Manifest *shown = nullptr;
  for (const targets::InspectedPart &part : artifact.parts) {
    // Every part of an artifact has the same module inside: once is enough.
    if (part.manifest && (!shown || shown->digest != part.manifest->digest)) {
      shown = &*part.manifest;
      printModule(*shown, shown->weightsSize, out);
    }
  }
  for (const targets::InspectedPart &part : artifact.parts) {
    out << "variant " << part.name << ": " << part.format << ", " << part.size << " bytes";
    if (part.unpackedSize != part.size)
      out << ", " << part.unpackedSize << " unpacked";
    if (part.manifest && part.manifest->stackSize)
      out << ", stack " << part.manifest->stackSize << " bytes";
    out << "\n";
    printSections(part.sections, out);
  }
}

void writeArtifact(const targets::Inspection &artifact, raw_ostream &out) {
  json::OStream json(out, 1);
  json.object([&] {
    json.attribute("kind", artifact.kind);
    json.attribute("bytes", static_cast<int64_t>(artifact.size));
    writeSections(json, artifact.sections);
    json.attributeArray("variants", [&] {
      for (const targets::InspectedPart &part : artifact.parts)
        json.object([&] {
          json.attribute("variant", part.name);
          json.attribute("format", part.format);
          json.attribute("bytes", static_cast<int64_t>(part.size));
          json.attribute("unpacked_bytes", static_cast<int64_t>(part.unpackedSize));
          writeSections(json, part.sections);
          if (!part.manifest)
            return;
          json.attribute("stack_bytes", static_cast<int64_t>(part.manifest->stackSize));
          writeModule(json, *part.manifest, part.manifest->weightsSize);
        });
    });
  });
  out << "\n";
}

} // namespace

Error inspect(const Options &options, raw_ostream &out) {
  auto kind = identify(options.models.front());
  if (!kind)
    return kind.takeError();
  if (*kind == FileKind::Model)
    return inspectModel(options, out);
  auto artifact = targets::inspect(options.models.front());
  if (!artifact)
    return userError(toString(artifact.takeError()));
  options.json ? writeArtifact(*artifact, out) : printArtifact(*artifact, out);
  return Error::success();
}

} // namespace vmpack::tool
