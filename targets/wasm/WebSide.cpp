// Emscripten apps that load the model on demand: side modules for dlopen and emscripten_dlopen. The generic CPU, not
// mvp: its bulk memory keeps zeroed data out of the file.
#include "targets/Variants.h"
#include "targets/wasm/WasmLink.h"

using namespace llvm;

namespace vmpack::targets {
namespace {

constexpr Variant variants[] = {
    {"baseline", "wasm32-unknown-emscripten", "generic", "", "wasm-baseline"},
    {"simd128", "wasm32-unknown-emscripten", "generic", "+simd128", "wasm-simd128"},
};

class WebSide final : public Target {
public:
  StringRef name() const override { return "web-side"; }
  StringRef description() const override { return "wasm side modules for Emscripten apps' dlopen (baseline, simd128)"; }

  Error build(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const override {
    if (Error error = buildWasmFiles(*this, module, variants, WasmKind::Side, options, out))
      return error;
    return writeExternalWeights(module, options, out);
  }
};

} // namespace

const Target &webSide() {
  static const WebSide target;
  return target;
}

} // namespace vmpack::targets
