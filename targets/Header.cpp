#include "targets/Header.h"
#include "targets/AbiText.h"
#include "targets/Names.h"
#include "targets/Runtimeless.h"

#include "vmpk/abi.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace llvm;

namespace vmpack::targets {
namespace {

/// A function as C sees it: every name valid and unique among its parameters.
struct Signature {
  const Function &function;
  uint32_t ordinal;
  std::string prefix;                             // "mlp", "mlp_encode"
  std::string macro;                              // "VMPK_MLP_ENCODE"
  std::vector<std::string> inputs, outputs, dims; // parameter names
  bool takesWeights;

  std::string dimParameters() const {
    std::string text;
    for (const std::string &dim : dims)
      text += "int64_t " + dim + ", ";
    return text;
  }
  std::string runParameters() const {
    std::string text;
    for (auto [name, tensor] : zip(inputs, function.inputs))
      text += ("const " + dtypeCType(tensor.dtype) + " *" + name + ", ").str();
    for (auto [name, tensor] : zip(outputs, function.outputs))
      text += (dtypeCType(tensor.dtype) + " *" + name + ", ").str();
    return text + dimParameters() + (takesWeights ? "const void *weights, " : "") + "void *arena";
  }
  std::string measureParameters() const { return dimParameters() + "uint64_t *arena_size, int64_t *output_dims"; }
};

std::string upper(StringRef text) { return text.upper(); }
std::string macroOf(StringRef prefix) { return ("VMPK_" + Twine(prefix.upper())).str(); }

std::vector<std::string> uniqueNames(NameScope &scope, ArrayRef<std::string> names) {
  std::vector<std::string> unique;
  for (const std::string &name : names)
    unique.push_back(scope.unique(name));
  return unique;
}

template <typename Range> std::vector<std::string> namesOf(const Range &range) {
  std::vector<std::string> names;
  for (const auto &each : range)
    names.push_back(each.name);
  return names;
}

std::vector<Signature> signaturesOf(const SharedModule &module, const HeaderOptions &options) {
  std::vector<Signature> signatures;
  std::vector<std::string> prefixes = functionPrefixes(module);
  for (auto [ordinal, function] : enumerate(module.functions)) {
    NameScope scope;
    for (StringRef name :
         {"arena",         "weights",      "arena_size",  "output_dims",   "memset",          "size_t",     "int8_t",
          "int16_t",       "int32_t",      "int64_t",     "uint8_t",       "uint16_t",        "uint32_t",   "uint64_t",
          "vmpk_status_t", "vmpk_entry_t", "vmpk_call_t", "vmpk_buffer_t", "vmpk_measured_t", "vmpk_entry", "vmpk_call",
          "vmpk_inputs",   "vmpk_outputs", "vmpk_dims",   "vmpk_measured", "vmpk_sizes",      "vmpk_status"})
      scope.reserve(name);
    scope.reserve("vmpk_" + module.name + "_query");
    signatures.push_back({function, static_cast<uint32_t>(ordinal), prefixes[ordinal], macroOf(prefixes[ordinal]),
                          uniqueNames(scope, namesOf(function.inputs)), uniqueNames(scope, namesOf(function.outputs)),
                          uniqueNames(scope, namesOf(function.dims)),
                          options.externalWeights && !module.weights.empty()});
  }
  return signatures;
}

/// Text that goes into a comment: on one line and unable to end it.
std::string commentText(StringRef text) {
  std::string safe;
  for (char each : text)
    safe += (each == '*' || each == '\\' || static_cast<unsigned char>(each) < ' ') ? '?' : each;
  return safe;
}

std::string dimsText(const Function &function, const Tensor &tensor) {
  auto entry = [&](int64_t dim) -> std::string {
    if (dim >= 0)
      return std::to_string(dim);
    return dim == VMPK_DIM_COMPUTED ? "?" : commentText(function.dims[-1 - dim].name);
  };
  return ("[" + Twine(join(map_range(tensor.dims, entry), ", ")) + "]").str();
}

/// What a parameter is, as documentation.
void documentTensors(raw_ostream &out, const Signature &signature) {
  auto line = [&](StringRef parameter, const Tensor &tensor, StringRef role) {
    out << " *  " << parameter << ": " << role << " '" << commentText(tensor.name) << "', " << dtypeName(tensor.dtype)
        << dimsText(signature.function, tensor) << "\n";
  };
  for (auto [name, tensor] : zip(signature.inputs, signature.function.inputs))
    line(name, tensor, "input");
  for (auto [name, tensor] : zip(signature.outputs, signature.function.outputs))
    line(name, tensor, "output");
  for (auto [name, dim] : zip(signature.dims, signature.function.dims)) {
    out << " *  " << name << ": dim '" << commentText(dim.name) << "', at least " << dim.minimum;
    if (dim.maximum != INT64_MAX)
      out << ", at most " << dim.maximum;
    out << "\n";
  }
}

void writeTensorMacros(raw_ostream &out, const Signature &signature) {
  NameScope scope;
  auto write = [&](StringRef parameter, const Tensor &tensor) {
    std::string name = signature.macro + "_" + scope.unique(upper(parameter));
    out << "#define " << name << "_DTYPE " << tensor.dtype << " /* " << dtypeName(tensor.dtype) << " */\n";
    out << "#define " << name << "_RANK " << tensor.dims.size() << "\n";
    if (any_of(tensor.dims, [](int64_t dim) { return dim < 0; }))
      return;
    uint64_t elements = 1;
    for (int64_t dim : tensor.dims)
      elements *= static_cast<uint64_t>(dim);
    if (!tensor.dims.empty())
      out << "#define " << name << "_SHAPE {"
          << join(map_range(tensor.dims, [](int64_t dim) { return std::to_string(dim); }), ", ") << "}\n";
    out << "#define " << name << "_ELEMENTS " << elements << "\n";
  };
  for (auto [name, tensor] : zip(signature.inputs, signature.function.inputs))
    write(name, tensor);
  for (auto [name, tensor] : zip(signature.outputs, signature.function.outputs))
    write(name, tensor);
}

void writeModuleMacros(raw_ostream &out, const SharedModule &module, const HeaderOptions &options) {
  std::string macro = macroOf(module.name);
  out << "/* SHA-256 of the shared module, which every artifact of this model has in common. */\n"
      << "#define " << macro << "_DIGEST \"" << toHex(module.digest, /*LowerCase=*/true) << "\"\n"
      << "/* Bytes of stack that one call needs at most" << (options.stackSize ? "" : "; 0: no bound is known")
      << ". */\n"
      << "#define " << macro << "_STACK_BYTES " << options.stackSize << "\n"
      << "#define " << macro << "_WEIGHTS_BYTES " << module.weights.size() << "\n"
      << "/* Alignment in bytes of the arena" << (options.externalWeights ? " and the weights" : "") << ". */\n"
      << "#define " << macro << "_ALIGNMENT " << VMPK_ALIGNMENT << "\n\n";
}

void writeFunctionMacros(raw_ostream &out, const Signature &signature) {
  out << "/* ---- " << commentText(signature.function.name) << " ---- */\n\n";
  if (signature.function.arenaSize != UINT64_MAX)
    out << "#define " << signature.macro << "_ARENA_BYTES " << signature.function.arenaSize << "\n";
  writeTensorMacros(out, signature);
  out << "\n";
}

/// The bodies of the typed calls: C99 and C++17.
class TypedCalls {
public:
  TypedCalls(raw_ostream &out, const SharedModule &module, const Signature &signature)
      : out(out), module(module), signature(signature) {}

  void writeMeasure() {
    out << "/** Sizes for these dims: bytes of the arena, and the dims of all outputs one after the other. Either may "
           "be NULL.\n"
        << " *  Returns 0, or a VMPK_STATUS_* value. */\n"
        << "static inline vmpk_status_t vmpk_" << signature.prefix << "_measure(" << signature.measureParameters()
        << ") {\n";
    declareEntry();
    out << "  vmpk_measured_t vmpk_measured;\n";
    declareDims();
    checkDims();
    queryEntry();
    measure("output_dims");
    out << "  if (vmpk_status == VMPK_STATUS_OK && arena_size)\n    *arena_size = vmpk_measured.arena_size;\n"
        << "  return vmpk_status;\n}\n\n";
  }

  void writeRun() {
    bool computed = any_of(signature.function.outputs, hasComputedDim);
    out << "/** Runs the model in the calling thread. Reentrant: threads need an arena and outputs each.\n";
    documentTensors(out, signature);
    out << " *  arena: working memory, " << VMPK_ALIGNMENT << "-byte aligned"
        << "\n *  Returns 0, or a VMPK_STATUS_* value. */\n"
        << "static inline vmpk_status_t vmpk_" << signature.prefix << "_run(" << signature.runParameters() << ") {\n";
    declareEntry();
    out << "  vmpk_call_t vmpk_call;\n";
    declareBuffers("vmpk_inputs", signature.inputs);
    declareBuffers("vmpk_outputs", signature.outputs);
    if (computed)
      out << "  vmpk_measured_t vmpk_measured;\n  int64_t vmpk_sizes[" << outputDimCount() << "];\n";
    declareDims();
    checkDims();
    out << "  if (((uintptr_t)arena & " << VMPK_ALIGNMENT - 1 << "u) != 0)\n    return VMPK_STATUS_INVALID_ARGUMENT;\n";
    queryEntry();
    if (computed)
      measure("vmpk_sizes"), out << "  if (vmpk_status != VMPK_STATUS_OK)\n    return vmpk_status;\n";
    fillBuffers("vmpk_inputs", signature.inputs, signature.function.inputs);
    fillBuffers("vmpk_outputs", signature.outputs, signature.function.outputs);
    fillCall();
    out << "  return vmpk_entry.invoke(&vmpk_call);\n}\n\n";
  }

private:
  static bool hasComputedDim(const Tensor &tensor) { return is_contained(tensor.dims, VMPK_DIM_COMPUTED); }

  size_t outputDimCount() const {
    size_t count = 0;
    for (const Tensor &tensor : signature.function.outputs)
      count += tensor.dims.size();
    return std::max<size_t>(count, 1);
  }

  void declareEntry() { out << "  vmpk_entry_t vmpk_entry;\n  vmpk_status_t vmpk_status;\n"; }
  void declareBuffers(StringRef name, ArrayRef<std::string> parameters) {
    out << "  vmpk_buffer_t " << name << "[" << std::max<size_t>(parameters.size(), 1) << "];\n";
  }
  void declareDims() {
    out << "  int64_t vmpk_dims[" << std::max<size_t>(signature.dims.size(), 1) << "];\n";
    for (auto [index, dim] : enumerate(signature.dims))
      out << "  vmpk_dims[" << index << "] = " << dim << ";\n";
    if (signature.dims.empty())
      out << "  vmpk_dims[0] = 0;\n";
  }
  void checkDims() {
    for (auto [name, dim] : zip(signature.dims, signature.function.dims)) {
      out << "  if (" << name << " < " << dim.minimum;
      if (dim.maximum != INT64_MAX)
        out << " || " << name << " > " << dim.maximum;
      out << ")\n    return VMPK_STATUS_OUT_OF_RANGE;\n";
    }
  }
  void queryEntry() {
    out << "  memset(&vmpk_entry, 0, sizeof(vmpk_entry));\n"
        << "  vmpk_entry.size = (uint32_t)sizeof(vmpk_entry);\n"
        << "  vmpk_status = vmpk_" << module.name << "_query(VMPK_ABI_VERSION, &vmpk_entry);\n"
        << "  if (vmpk_status != VMPK_STATUS_OK)\n    return vmpk_status;\n";
  }
  void measure(StringRef outputDims) {
    out << "  memset(&vmpk_measured, 0, sizeof(vmpk_measured));\n"
        << "  vmpk_measured.size = (uint32_t)sizeof(vmpk_measured);\n"
        << "  vmpk_measured.output_dims = " << outputDims << ";\n"
        << "  vmpk_status = vmpk_entry.measure(" << signature.ordinal << "u, vmpk_dims, &vmpk_measured);\n";
  }
  void fillBuffers(StringRef array, ArrayRef<std::string> names, ArrayRef<Tensor> tensors) {
    out << "  memset(" << array << ", 0, sizeof(" << array << "));\n";
    size_t measured = 0; // position in vmpk_sizes, of outputs
    for (auto [index, tensor] : enumerate(tensors)) {
      out << "  " << array << "[" << index << "].data = (void *)" << names[index] << ";\n"
          << "  " << array << "[" << index << "].size = " << dtypeSize(tensor.dtype) << "u";
      for (auto [axis, dim] : enumerate(tensor.dims)) {
        out << " * (uint64_t)";
        if (dim >= 0)
          out << dim;
        else if (dim == VMPK_DIM_COMPUTED)
          out << "vmpk_sizes[" << measured + axis << "]";
        else
          out << signature.dims[-1 - dim];
      }
      measured += tensor.dims.size();
      out << ";\n";
    }
  }
  void fillCall() {
    out << "  memset(&vmpk_call, 0, sizeof(vmpk_call));\n"
        << "  vmpk_call.size = (uint32_t)sizeof(vmpk_call);\n"
        << "  vmpk_call.function = " << signature.ordinal << "u;\n"
        << "  vmpk_call.arena = (uint8_t *)arena;\n"
        << "  vmpk_call.arena_size = "
        << (signature.function.arenaSize == UINT64_MAX ? "UINT64_MAX"
                                                       : std::to_string(signature.function.arenaSize) + "u")
        << ";\n  vmpk_call.weights = " << (signature.takesWeights ? "(const uint8_t *)weights" : "vmpk_entry.weights")
        << ";\n  vmpk_call.dims = vmpk_dims;\n  vmpk_call.inputs = vmpk_inputs;\n  vmpk_call.outputs = vmpk_outputs;\n";
  }

  raw_ostream &out;
  const SharedModule &module;
  const Signature &signature;
};

std::string guardOf(const SharedModule &module) { return ("VMPK_MODEL_" + Twine(upper(module.name)) + "_H").str(); }

void openHeader(raw_ostream &out, const SharedModule &module, StringRef about) {
  out << "/* " << module.name << ".h - " << about << " Made by vmpack. */\n"
      << "#ifndef " << guardOf(module) << "\n#define " << guardOf(module) << "\n\n"
      << "#include <stdint.h>\n#include <string.h>\n\n";
}

constexpr StringLiteral openLinkage = "#ifdef __cplusplus\nextern \"C\" {\n#endif\n\n",
                        closeLinkage = "#ifdef __cplusplus\n}\n#endif\n\n";

} // namespace

std::string staticHeader(const SharedModule &module, const HeaderOptions &options) {
  std::string text;
  raw_string_ostream out(text);
  openHeader(out, module, "a model to link.");
  out << "/* ---- The interface of modules, as in vmpk/status.h and vmpk/abi.h ---- */\n\n" << abiText() << "\n";
  out << openLinkage << "/** The module, for the runtime (vmpk_static_module) or a host of your own. */\n"
      << "vmpk_status_t vmpk_" << module.name << "_query(uint32_t host_abi_version, vmpk_entry_t *out);\n\n";
  writeModuleMacros(out, module, options);
  for (const Signature &signature : signaturesOf(module, options)) {
    writeFunctionMacros(out, signature);
    TypedCalls calls(out, module, signature);
    if (needsMeasure(signature.function))
      calls.writeMeasure();
    calls.writeRun();
  }
  out << closeLinkage << "#endif /* " << guardOf(module) << " */\n";
  return text;
}

std::string runtimelessHeader(const SharedModule &module, const HeaderOptions &options) {
  std::string text;
  raw_string_ostream out(text);
  openHeader(out, module, "a model as plain functions, which need no library.");
  out << openLinkage;
  writeModuleMacros(out, module, options);
  for (const Signature &signature : signaturesOf(module, options)) {
    writeFunctionMacros(out, signature);
    if (needsMeasure(signature.function))
      out << "/** Sizes for these dims: bytes of the arena, and the dims of all outputs one after the other. Either "
             "may be "
             "NULL.\n *  Returns 0, or a status of vmpk/status.h (8: a dim is out of its bounds). */\n"
          << "int " << signature.prefix << "_measure(" << signature.measureParameters() << ");\n\n";
    out << "/** Runs the model in the calling thread. Reentrant: threads need an arena and outputs each.\n";
    documentTensors(out, signature);
    if (signature.takesWeights)
      out << " *  weights: the bytes of " << module.name << ".weights, " << VMPK_ALIGNMENT << "-byte aligned\n";
    out << " *  arena: working memory, " << VMPK_ALIGNMENT << "-byte aligned\n"
        << " *  Returns 0, or a status of vmpk/status.h (1: the arena is not aligned, 8: a dim is out of its bounds). "
           "*/\n"
        << "int " << signature.prefix << "_run(" << signature.runParameters() << ");\n\n";
  }
  out << closeLinkage << "#endif /* " << guardOf(module) << " */\n";
  return text;
}

} // namespace vmpack::targets
