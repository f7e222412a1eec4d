//===- StackBound.h - the stack one invoke needs at most ------------------------------------------------===//
//
//   frame sizes (from LLVM's prologue pass)  +  call graph of the optimized module  ──►  longest path in bytes
//
// A schedule calls dispatches through a pointer: every function of that type whose address is taken is a callee.
// What the host runs in between is on the host's account.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_STACKBOUND_H
#define VMPACK_TARGETS_STACKBOUND_H

#include "llvm/ADT/StringMap.h"
#include "llvm/IR/DiagnosticHandler.h"
#include "llvm/IR/Module.h"

#include <string>

namespace vmpack::targets {

/// Collects the frame size of each function as LLVM lays it out, and the words of any error. Owned by the LLVMContext.
struct CodegenDiagnostics : llvm::DiagnosticHandler {
  llvm::StringMap<uint64_t> frames;
  std::string errors; ///< '; '-separated

  bool handleDiagnostics(const llvm::DiagnosticInfo &info) override;
  bool isAnalysisRemarkEnabled(llvm::StringRef passName) const override;
  bool isMissedOptRemarkEnabled(llvm::StringRef) const override { return false; }
  bool isPassedOptRemarkEnabled(llvm::StringRef) const override { return false; }
  bool isAnyRemarkEnabled() const override { return true; }
};

/// Bytes of stack that the deepest chain of calls in `module` takes, or 0 when there is no bound (recursion, allocas of
/// variable size).
uint64_t stackBound(const llvm::Module &module, const llvm::StringMap<uint64_t> &frames);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_STACKBOUND_H
