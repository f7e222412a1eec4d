//===- Runtimeless.h - one plain function instead of the module interface -------------------------------===//
//
//   int NAME_run(in0, …, out0, …, [dim0, …], [weights], arena)
//   int NAME_measure([dim0, …], uint64_t *arena_size, int64_t *output_dims)    where sizes depend on dims
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

/// Whether the function's arena and outputs have sizes that are only known at run time: it then has a PREFIX_measure.
bool needsMeasure(const Function &function);

/// Adds the functions to `llvmModule`, which holds the shared module's code, and gives the names to be exported.
std::vector<std::string> addRunFunctions(llvm::Module &llvmModule, const SharedModule &module,
                                         WeightsPlacement weights);

/// After optimization: an error when anything is still called through a pointer.
llvm::Error checkNoIndirectCalls(const llvm::Module &llvmModule);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_RUNTIMELESS_H
