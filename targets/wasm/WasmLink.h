//===- WasmLink.h - one wasm module --------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_WASM_WASMLINK_H
#define VMPACK_TARGETS_WASM_WASMLINK_H

#include "targets/Codegen.h"
#include "targets/OutputFile.h"
#include "targets/Target.h"

namespace vmpack::targets {

/// What kind of module to make.
enum class WasmKind {
  Standalone, ///< its own memory and table; imports nothing
  Side        ///< position independent, for an Emscripten program's dlopen
};

/// Compiles `module` for `variant` and links it. `vmpk_query` is exported; a standalone module also exports its memory,
/// its table (for calling the functions that vmpk_entry names) and __heap_base, where free memory begins.
llvm::Expected<std::vector<char>> buildWasm(const SharedModule &module, const Variant &variant, WasmKind kind,
                                            const BuildOptions &options, const OutputDirectory &out);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_WASM_WASMLINK_H
