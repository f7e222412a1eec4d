#include "targets/wasm/JsPackage.h"
#include "targets/Names.h"

#include "vmpk/abi.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;

namespace vmpack::targets {

/// `text` as a JavaScript string.
static std::string quote(StringRef text) {
  std::string quoted;
  raw_string_ostream(quoted) << json::Value(json::fixUTF8(text));
  return quoted;
}

static std::string url(const Twine &file) { return "new URL(" + quote(("./" + file).str()) + ", import.meta.url)"; }

std::string entryModule(const SharedModule &module, ArrayRef<StringRef> variants, bool externalWeights) {
  std::string text;
  raw_string_ostream out(text);
  out << "// " << module.name
      << ".mjs - a model compiled by vmpack:  const model = await load();  await model.run({…});\n"
      << "import { load as loadModule } from './vmpk.mjs';\n\n"
      << "export { VmpkError, supportedVariants } from './vmpk.mjs';\n\n"
      << "/** SHA-256 of the shared module, which every artifact of this model has in common. */\n"
      << "export const digest = '" << toHex(module.digest, /*LowerCase=*/true) << "';\n\n"
      << "/** The model's code, by what an engine must know to run it. */\n"
      << "export const variants = {\n";
  for (StringRef variant : variants)
    out << "  " << quote(variant) << ": " << url(module.name + "." + variant + ".wasm") << ",\n";
  out << "};\n\n";
  if (externalWeights)
    out << "/** The model's weights. */\nexport const weights = " << url(module.name + ".weights") << ";\n\n";
  out << "/** Loads the best variant for this engine. Options: see " << module.name << ".d.ts. */\n"
      << "export const load = (options = {}) => loadModule(variants, "
      << (externalWeights ? "{ weights, ...options }" : "options") << ");\n";
  return text;
}

static StringRef arrayType(uint32_t dtype) {
  switch (dtype) {
  case VMPK_DTYPE_F32:
    return "Float32Array";
  case VMPK_DTYPE_F64:
    return "Float64Array";
  case VMPK_DTYPE_I8:
    return "Int8Array";
  case VMPK_DTYPE_I16:
    return "Int16Array";
  case VMPK_DTYPE_I32:
    return "Int32Array";
  case VMPK_DTYPE_I64:
    return "BigInt64Array";
  case VMPK_DTYPE_U32:
    return "Uint32Array";
  case VMPK_DTYPE_U64:
    return "BigUint64Array";
  case VMPK_DTYPE_U8:
  case VMPK_DTYPE_BOOL:
    return "Uint8Array";
  default: // the halves travel as their bits
    return "Uint16Array";
  }
}

namespace {

/// Names of types come from names of functions: UpperCamel, unique.
struct FunctionTypes {
  const Function &function;
  std::string inputs, outputs;
};

std::string upperCamel(StringRef name) {
  std::string camel;
  SmallVector<StringRef> words;
  name.split(words, '_', -1, /*KeepEmpty=*/false);
  for (StringRef word : words)
    camel += word.take_front().upper() + word.drop_front().str();
  return camel;
}

std::string dimsComment(const Function &function, const Tensor &tensor) {
  auto entry = [&](int64_t dim) -> std::string {
    if (dim >= 0)
      return std::to_string(dim);
    return dim == VMPK_DIM_COMPUTED ? "?" : cIdentifier(function.dims[-1 - dim].name);
  };
  return ("/** " + dtypeName(tensor.dtype) + "[" + join(map_range(tensor.dims, entry), ", ") + "] */").str();
}

void writeTensorTypes(raw_ostream &out, StringRef type, const Function &function, ArrayRef<Tensor> tensors,
                      bool isInput) {
  out << "export interface " << type << " {\n";
  for (const Tensor &tensor : tensors) {
    StringRef array = arrayType(tensor.dtype);
    bool isStatic = all_of(tensor.dims, [](int64_t dim) { return dim >= 0; });
    out << "  " << dimsComment(function, tensor) << "\n  " << quote(tensor.name) << ": "
        << (isInput && isStatic ? array.str() + " | " : std::string()) << "Tensor<" << array << ">;\n";
  }
  out << "}\n\n";
}

} // namespace

static constexpr StringLiteral commonTypes = R"(/** A dense row-major tensor. */
export interface Tensor<A> { data: A; dims: number[]; }

/** Where bytes may come from. */
export type Source = URL | string | Response | Blob | ArrayBuffer | ArrayBufferView;

export interface LoadOptions {
  /** Takes this variant instead of the best. */
  variant?: Variant;
  /** The weights, when they are a file of their own and not beside this module. */
  weights?: Source | Promise<Source>;
  /** For every fetch. */
  request?: RequestInit;
  /** false: weights are not checked against their SHA-256. */
  verify?: boolean;
}

export interface RunOptions {
  /** true: outputs are views of the model's memory, good until the next call. */
  view?: boolean;
}

/** Every failure; `code` is the name of a status, such as 'SHAPE_MISMATCH'. */
export class VmpkError extends Error { code: string; status: number; }

/** The variants that this engine can run, the best first. */
export function supportedVariants(): Variant[];

)";

std::string entryTypes(const SharedModule &module, ArrayRef<StringRef> variants) {
  std::string text;
  raw_string_ostream out(text);
  out << "// " << module.name << ".d.ts - made by vmpack.\n\n"
      << "export type Variant = " << join(map_range(variants, quote), " | ") << ";\n\n"
      << commonTypes;
  NameScope scope;
  for (StringRef name : {"Tensor", "Source", "LoadOptions", "RunOptions", "VmpkError", "Variant", "Runner", "Model"})
    scope.reserve(name);
  std::vector<FunctionTypes> functions;
  for (const Function &function : module.functions) {
    std::string name = upperCamel(cIdentifier(function.name));
    functions.push_back({function, scope.unique(name + "Inputs"), scope.unique(name + "Outputs")});
    writeTensorTypes(out, functions.back().inputs, function, function.inputs, /*isInput=*/true);
    writeTensorTypes(out, functions.back().outputs, function, function.outputs, /*isInput=*/false);
  }
  out << "/** Runs the model, one call at a time. */\nexport interface Runner {\n";
  // The function that is run when none is named: main, or the first.
  auto main = find_if(functions, [](const FunctionTypes &each) { return each.function.name == "main"; });
  size_t first = main == functions.end() ? 0 : main - functions.begin();
  for (auto [index, each] : enumerate(functions)) {
    std::string options = "options" + std::string(index == first ? "?" : "") + ": RunOptions & { function" +
                          (index == first ? "?" : "") + ": " + quote(each.function.name) + " }";
    out << "  run(inputs: " << each.inputs << ", " << options << "): Promise<" << each.outputs << ">;\n"
        << "  runSync(inputs: " << each.inputs << ", " << options << "): " << each.outputs << ";\n";
  }
  out << "  dispose(): void;\n}\n\n"
      << "/** A loaded model. */\nexport interface Model extends Runner {\n"
      << "  readonly name: string;\n  readonly digest: string;\n  readonly variant: Variant | null;\n"
      << "  readonly memory: WebAssembly.Memory;\n"
      << "  /** Another runner with memory of its own for tensors; code and weights are shared. */\n"
      << "  instantiate(): Promise<Runner>;\n}\n\n"
      << "export const digest: string;\nexport const variants: Record<Variant, URL>;\n\n"
      << "/** Loads the best variant for this engine. */\n"
      << "export function load(options?: LoadOptions): Promise<Model>;\n";
  return text;
}

} // namespace vmpack::targets
