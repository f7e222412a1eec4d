//===- StaticBuild.h - archives to link --------------------------------------------------------------------===//
//
//   variants ─► objects ─► one .a a machine ─► (Apple) one fat .a a folder      + include/NAME.h for all of them
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_STATIC_STATICBUILD_H
#define VMPACK_TARGETS_STATIC_STATICBUILD_H

#include "targets/Codegen.h"
#include "targets/Target.h"

namespace vmpack::targets {

/// The machines that share one library file.
struct StaticSlice {
  llvm::StringRef folder; ///< in the target's output, e.g. "ios-arm64"
  std::vector<Variant> variants;
};

/// A static last mile is its slices: libNAME.a a folder (fat when it holds several machines), and include/NAME.h.
class StaticTarget final : public Target {
public:
  StaticTarget(llvm::StringRef name, llvm::StringRef description, std::vector<StaticSlice> slices)
      : targetName(name), text(description), slices(std::move(slices)) {}

  llvm::StringRef name() const override { return targetName; }
  llvm::StringRef description() const override { return text; }
  llvm::Error build(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const override;

private:
  llvm::Error compileAll(const SharedModule &module, const BuildOptions &options,
                         std::vector<ObjectCode> &objects) const;
  llvm::Error writeSlice(const SharedModule &module, const StaticSlice &slice, llvm::ArrayRef<ObjectCode> objects,
                         OutputDirectory &out) const;

  llvm::StringRef targetName, text;
  std::vector<StaticSlice> slices;
};

/// Compiles one object that is to be linked into a program: exports `vmpk_NAME_query`, or the run functions.
llvm::Expected<ObjectCode> compileStatic(const SharedModule &module, CodegenRequest request,
                                         const BuildOptions &options);

/// The text of NAME.h for `options`.
std::string headerFor(const SharedModule &module, const BuildOptions &options, uint64_t stackSize);

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_STATIC_STATICBUILD_H
