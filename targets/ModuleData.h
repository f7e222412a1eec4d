//===- ModuleData.h - the module table and the weights as constants of the code -------------------------===//
//
//   declare (before the optimizer: only names)  ─►  define (after it: bytes)  ─►  patch (in the object: stack size)
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_MODULEDATA_H
#define VMPACK_TARGETS_MODULEDATA_H

#include "targets/Codegen.h"

#include "llvm/IR/Module.h"

namespace vmpack::targets {

/// What every format and code model can address: 2 GiB less 64 MiB for the code.
inline constexpr uint64_t maxEmbeddedWeights = (uint64_t(2) << 30) - (uint64_t(64) << 20);

/// Sections of their own, so that reports can tell code from weights: ELF and wasm names.
inline constexpr llvm::StringLiteral tableSection = ".vmpk.table", weightsSection = ".vmpk.weights";

/// Defines vmpk_module_table() and vmpk_module_weights() over constants that have no bytes yet.
void declareModuleData(llvm::Module &llvmModule, const SharedModule &module, WeightsPlacement weights);

/// Whether `value` is one of those constants.
bool isModuleData(const llvm::GlobalValue &value);

/// Gives the constants their bytes; drops those that nothing refers to.
void defineModuleData(llvm::Module &llvmModule, const SharedModule &module, WeightsPlacement weights);

/// Sets stack_size in the module table inside the bytes of an object or a linked file.
llvm::Error patchStackSize(llvm::MutableArrayRef<char> file, const SharedModule &module, uint64_t stackSize);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_MODULEDATA_H
