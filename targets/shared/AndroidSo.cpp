#include "targets/Variants.h"
#include "targets/shared/Bundle.h"
#include "targets/shared/ElfLink.h"

using namespace llvm;

namespace vmpack::targets {
namespace {

struct AndroidVariant {
  Variant machine;
  StringLiteral abi, level; ///< as in the bundle; level "" is the ABI's baseline
};

/// Android's ABIs, each with the CPU features that it promises; of one ABI the better variant last, as loaders want it.
constexpr AndroidVariant variants[] = {
    {{"arm64-v8a", "aarch64-linux-android21", "generic", "+neon", "armv8.0"}, "arm64-v8a", ""},
    {{"armeabi-v7a", "armv7a-linux-androideabi21", "generic", "+neon,+vfp3,+d32", "armv7"}, "armeabi-v7a", ""},
    {{"x86_64", "x86_64-linux-android21", "x86-64-v2", "", "x86-64-v2"}, "x86_64", ""},
    {{"x86_64-v3", "x86_64-linux-android21", "x86-64-v3", "", "x86-64-v3"}, "x86_64", "x86-64-v3"},
    {{"x86", "i686-linux-android21", "i686", "+cx8,+mmx,+fxsr,+sse,+sse2,+sse3,+ssse3", "x86"}, "x86", ""},
};

class AndroidSo final : public Target {
public:
  StringRef name() const override { return "android-so"; }
  StringRef description() const override {
    return "bundle of .so files for Android (arm64-v8a, armeabi-v7a, x86_64, x86)";
  }

  Error build(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const override {
    // The bundle holds the weights once; no .so has a copy.
    BuildOptions codeOnly = options;
    codeOnly.weights = WeightsMode::External;
    std::vector<BundleVariant> built(std::size(variants));
    Error error = forEachVariant(built.size(), [&](size_t index) -> Error {
      const AndroidVariant &variant = variants[index];
      announce(options, *this, variant.machine.name);
      Expected<std::vector<char>> linked =
          buildSharedObject(module, variant.machine, codeOnly, "lib" + module.name + ".so", out);
      if (!linked)
        return linked.takeError();
      built[index] = {variant.abi.str(), variant.level.str(), std::move(*linked)};
      return Error::success();
    });
    if (error)
      return inTarget(*this, std::move(error));
    Expected<std::vector<char>> bundle = writeBundle(module, built, options.weights);
    if (!bundle)
      return inTarget(*this, bundle.takeError());
    if (Error error = out.write(module.name + ".vmpb", ArrayRef<char>(*bundle)))
      return error;
    return writeExternalWeights(module, options, out);
  }
};

} // namespace

const Target &androidSo() {
  static const AndroidSo target;
  return target;
}

} // namespace vmpack::targets
