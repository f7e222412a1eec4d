#include "targets/Variants.h"
#include "targets/shared/ElfLink.h"

using namespace llvm;

namespace vmpack::targets {
namespace {

/// Linux machines. The first that a CPU can run is its best: the loader tries them in this order.
constexpr Variant variants[] = {
    {"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", "", "x86-64-v3"},
    {"x86-64-v2", "x86_64-unknown-linux-gnu", "x86-64-v2", "", "x86-64-v2"},
    {"aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon", "armv8.0"},
};

class LinuxSo final : public Target {
public:
  StringRef name() const override { return "linux-so"; }
  StringRef description() const override { return "freestanding .so for Linux (x86-64-v2, x86-64-v3, aarch64)"; }

  Error build(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const override {
    for (const Variant &variant : variants) {
      announce(options, *this, variant.name);
      std::string file = (module.name + "." + variant.name + ".so").str();
      Expected<std::vector<char>> linked = buildSharedObject(module, variant, options, file, out);
      if (!linked)
        return inTarget(*this, linked.takeError());
      if (Error error = out.write(file, ArrayRef<char>(*linked)))
        return error;
    }
    return writeExternalWeights(module, options, out);
  }
};

} // namespace

const Target &linuxSo() {
  static const LinuxSo target;
  return target;
}

} // namespace vmpack::targets
