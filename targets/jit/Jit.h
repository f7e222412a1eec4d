//===- Jit.h - the shared module as code of this process ------------------------------------------------===//
//
// The in-memory last mile: `vmpack run`, `vmpack bench` and the tests. It goes through the same codegen as every
// artifact, and what comes out is a vmpk_query like any other.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_JIT_JIT_H
#define VMPACK_TARGETS_JIT_JIT_H

#include "targets/SharedModule.h"
#include "vmpk/abi.h"

#include "llvm/Support/Error.h"

#include <memory>
#include <string>

namespace llvm::orc {
class LLJIT;
}

namespace vmpack::targets {

/// Compiled code in this process. Freed with the object: no call may be under way then.
class JitModule {
public:
  /// Compiles `module` for the CPU this runs on. The weights are used where they are: `module` must outlive the answer.
  /// `level` picks a kernel level lower than the CPU's best ("x86-64-v2"), "" the best.
  static llvm::Expected<std::unique_ptr<JitModule>> create(const SharedModule &module, llvm::StringRef level = "");
  ~JitModule();

  /// The module's query. Valid as long as this object.
  vmpk_query_fn query() const { return queryFunction; }
  /// The kernel level that was taken.
  llvm::StringRef level() const { return levelName; }

private:
  JitModule() = default;
  std::unique_ptr<llvm::orc::LLJIT> jit;
  vmpk_query_fn queryFunction = nullptr;
  std::string levelName;
};

/// The kernel levels that this CPU can run, best first.
std::vector<std::string> hostLevels();

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_JIT_JIT_H
