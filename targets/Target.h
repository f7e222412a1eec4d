//===- Target.h - the interface of a last mile ----------------------------------------------------------===//
//
// A target turns the shared module into the files of one platform. Adding one is a folder here, a row in Targets.def
// and a test folder.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_TARGET_H
#define VMPACK_TARGETS_TARGET_H

#include "targets/OutputFile.h"
#include "targets/SharedModule.h"

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <functional>
#include <memory>

namespace vmpack::targets {

/// Where a target puts the weights: inside each artifact, or in one file beside it (`NAME.weights`).
enum class WeightsMode { Embed, External };

/// What the user asked of the last miles. One value serves all targets of a call.
struct BuildOptions {
  WeightsMode weights = WeightsMode::Embed;
  bool runtimeless = false; ///< link schedule and kernels into one function (static targets and `object`)
  std::string triple;       ///< target `object` only
  std::string cpu;          ///< target `object` only; "" is the baseline of the triple
  std::function<void(llvm::StringRef)> progress; ///< told of each step, e.g. "android-so: armeabi-v7a"; may be empty
};

/// A last mile. Stateless; may be used from several threads.
class Target {
public:
  virtual ~Target() = default;
  virtual llvm::StringRef name() const = 0;        ///< as in --target=
  virtual llvm::StringRef description() const = 0; ///< one line for --list-targets

  /// Builds every file of this target from `module` into `out`. Nothing the user sees changes before out.commit(),
  /// which the caller does. Errors name the target and variant.
  virtual llvm::Error build(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const = 0;
};

/// Every target of Targets.def, in its order.
llvm::ArrayRef<const Target *> allTargets();

/// The target of that name, or an error that lists the names.
llvm::Expected<const Target *> findTarget(llvm::StringRef name);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_TARGET_H
