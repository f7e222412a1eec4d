//===- Runtimeless.h - one plain function instead of the module interface -------------------------------===//
//
//   int NAME_run(in0, …, out0, …, [dim0, …], [weights], arena)
//     └─ vmpk_call on the stack, host = NULL  ──►  vmpk_module_invoke  ──►  schedule  ──►  dispatches
//
// It is the same shared module: once the schedule is inlined, the optimizer sees that there is no host, so that grids
// become loops, indirect calls direct ones, and host calls disappear.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_RUNTIMELESS_H
#define VMPACK_TARGETS_RUNTIMELESS_H

#include "targets/Codegen.h"

#include "llvm/IR/Module.h"

namespace vmpack::targets {

/// What each function of `module` is called in C, without a suffix: NAME when there is one, NAME_FUNCTION otherwise.
std::vector<std::string> functionPrefixes(const SharedModule &module);

/// Whether the size of the function's arena is known. When it is not, the artifact exports PREFIX_arena_size(dims…).
bool hasStaticArena(const Function &function);

/// Adds the functions to `llvmModule`, which holds the shared module's code, and gives the names to be exported.
std::vector<std::string> addRunFunctions(llvm::Module &llvmModule, const SharedModule &module,
                                         WeightsPlacement weights);

/// After optimization: an error when anything is still called through a pointer.
llvm::Error checkNoIndirectCalls(const llvm::Module &llvmModule);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_RUNTIMELESS_H
