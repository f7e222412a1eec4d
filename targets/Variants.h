//===- Variants.h - what all last miles do with a row of their table ------------------------------------===//
#ifndef VMPACK_TARGETS_VARIANTS_H
#define VMPACK_TARGETS_VARIANTS_H

#include "targets/Codegen.h"
#include "targets/Target.h"

namespace vmpack::targets {

/// Tells the user of a step, "TARGET: VARIANT".
inline void announce(const BuildOptions &options, const Target &target, llvm::StringRef variant) {
  if (options.progress)
    options.progress((target.name() + ": " + variant).str());
}

/// An error that names its target.
inline llvm::Error inTarget(const Target &target, llvm::Error error) {
  return llvm::createStringError(target.name() + ": " + llvm::toString(std::move(error)));
}

inline WeightsPlacement placementOf(const BuildOptions &options) {
  return options.weights == WeightsMode::Embed ? WeightsPlacement::Embedded : WeightsPlacement::Absent;
}

/// Writes NAME.weights when the weights are external and there are any.
inline llvm::Error writeExternalWeights(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) {
  if (options.weights == WeightsMode::Embed || module.weights.empty())
    return llvm::Error::success();
  return out.write(module.name + ".weights",
                   llvm::ArrayRef<char>(reinterpret_cast<const char *>(module.weights.data()), module.weights.size()));
}

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_VARIANTS_H
