//===- Optimize.h - LLVM's machines and pipelines as vmpack uses them -----------------------------------===//
#ifndef VMPACK_TARGETS_OPTIMIZE_H
#define VMPACK_TARGETS_OPTIMIZE_H

#include "targets/Codegen.h"

#include "llvm/IR/Module.h"
#include "llvm/Target/TargetMachine.h"

namespace vmpack::targets {

/// LLVM's description of the machine: position independent (but for plain wasm), no library behind it.
llvm::Expected<std::unique_ptr<llvm::TargetMachine>> createMachine(const CodegenRequest &request);

/// Makes `function` code for `machine`: its CPU and features, no unwinding, no stack protector, no library calls.
void stampFunction(llvm::Function &function, const CodegenRequest &request, const llvm::TargetMachine &machine);

/// O3 with loop and SLP vectorization, in the belief that there is no C library.
void optimizeModule(llvm::Module &module, llvm::TargetMachine &machine);

/// The same for one function that comes late; its callers stay as they are.
void optimizeFunction(llvm::Function &function, llvm::TargetMachine &machine);

/// Object file bytes of `module`, which is consumed by it. Diagnostics go to the module's context.
llvm::Expected<std::vector<char>> emitObject(llvm::Module &module, llvm::TargetMachine &machine);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_OPTIMIZE_H
