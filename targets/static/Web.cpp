// Emscripten apps that link the model in: wasm objects, which any Emscripten from 3.1.6 on takes.
#include "targets/static/StaticBuild.h"

namespace vmpack::targets {

const Target &webStatic() {
  static const StaticTarget target(
      "web-static", "wasm archives and C header for Emscripten apps (baseline, simd128)",
      {{"baseline", {{"baseline", "wasm32-unknown-emscripten", "mvp", "+mutable-globals,+sign-ext", "wasm-baseline"}}},
       {"simd128",
        {{"simd128", "wasm32-unknown-emscripten", "mvp",
          "+mutable-globals,+sign-ext,+nontrapping-fptoint,+bulk-memory,+bulk-memory-opt,+simd128", "wasm-simd128"}}}});
  return target;
}

} // namespace vmpack::targets
