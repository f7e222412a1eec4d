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

/// Compiles `module` for each variant and links it to NAME.VARIANT.wasm. `vmpk_query` is exported; a standalone module
/// also exports its memory, its table (for calling the functions that vmpk_entry names) and __heap_base, where free
/// memory begins.
llvm::Error buildWasmFiles(const Target &target, const SharedModule &module, llvm::ArrayRef<Variant> variants,
                           WasmKind kind, const BuildOptions &options, OutputDirectory &out);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_WASM_WASMLINK_H
