// A web page's package: one module a variant, the loader and an entry that picks the variant.
#include "targets/Embedded.h"
#include "targets/Variants.h"
#include "targets/wasm/JsPackage.h"
#include "targets/wasm/WasmLink.h"

#include "llvm/ADT/STLExtras.h"

using namespace llvm;

namespace vmpack::targets {
namespace {

/// Features are spelled out from mvp on, so that a newer LLVM's defaults do not lock out engines. All engines with SIMD
/// have the others too.
constexpr Variant variants[] = {
    {"baseline", "wasm32-unknown-unknown", "mvp", "+mutable-globals,+sign-ext", "wasm-baseline"},
    {"simd128", "wasm32-unknown-unknown", "mvp",
     "+mutable-globals,+sign-ext,+nontrapping-fptoint,+bulk-memory,+bulk-memory-opt,+simd128", "wasm-simd128"},
    {"relaxed-simd", "wasm32-unknown-unknown", "mvp",
     "+mutable-globals,+sign-ext,+nontrapping-fptoint,+bulk-memory,+bulk-memory-opt,+simd128,+relaxed-simd",
     "wasm-relaxed-simd"},
};

class WebWasm final : public Target {
public:
  StringRef name() const override { return "web-wasm"; }
  StringRef description() const override {
    return "wasm modules (baseline, simd128, relaxed-simd) with an ES module that loads them";
  }

  Error build(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const override {
    if (Error error = buildWasmFiles(*this, module, variants, WasmKind::Standalone, options, out))
      return error;
    if (Error error = writeScripts(module, options, out))
      return error;
    return writeExternalWeights(module, options, out);
  }

private:
  Error writeScripts(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const {
    SmallVector<StringRef> names(map_range(variants, [](const Variant &variant) -> StringRef { return variant.name; }));
    bool external = options.weights == WeightsMode::External && !module.weights.empty();
    // The loader is vmpk.mjs whatever the model is called.
    std::string stem = module.name == "vmpk" ? "vmpk_model" : module.name;
    const std::pair<std::string, std::string> files[] = {
        {stem + ".mjs", entryModule(module, names, external)},
        {stem + ".d.ts", entryTypes(module, names)},
        {"vmpk.mjs", embeddedLoader().str()},
    };
    for (const auto &[file, text] : files)
      if (Error error = out.write(file, StringRef(text)))
        return error;
    return Error::success();
  }
};

} // namespace

const Target &webWasm() {
  static const WebWasm target;
  return target;
}

} // namespace vmpack::targets
