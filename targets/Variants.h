//===- Variants.h - what all last miles do with the rows of their table ---------------------------------===//
#ifndef VMPACK_TARGETS_VARIANTS_H
#define VMPACK_TARGETS_VARIANTS_H

#include "targets/Codegen.h"
#include "targets/Target.h"

#include <functional>

namespace vmpack::targets {

/// Tells the user of a step, "TARGET: VARIANT". One thread at a time gets through.
void announce(const BuildOptions &options, const Target &target, llvm::StringRef variant);

/// An error that names its target.
llvm::Error inTarget(const Target &target, llvm::Error error);

WeightsPlacement placementOf(const BuildOptions &options);

/// Calls `work` for 0 … count - 1, on as many threads as there are CPUs. Variants share nothing, so the order in which
/// they are done does not show in any output. The error of the lowest number that has one.
llvm::Error forEachVariant(size_t count, const std::function<llvm::Error(size_t)> &work);

/// Writes NAME.weights when the weights are external and there are any.
llvm::Error writeExternalWeights(const SharedModule &module, const BuildOptions &options, OutputDirectory &out);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_VARIANTS_H
