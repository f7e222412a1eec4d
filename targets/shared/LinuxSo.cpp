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
    std::vector<std::vector<char>> linked(std::size(variants));
    auto fileOf = [&](size_t index) { return (module.name + "." + variants[index].name + ".so").str(); };
    Error error = forEachVariant(linked.size(), [&](size_t index) -> Error {
      announce(options, *this, variants[index].name);
      Expected<std::vector<char>> made = buildSharedObject(module, variants[index], options, fileOf(index), out);
      if (made)
        linked[index] = std::move(*made);
      return made.takeError();
    });
    if (error)
      return inTarget(*this, std::move(error));
    for (size_t index = 0; index < linked.size(); ++index)
      if (Error error = out.write(fileOf(index), ArrayRef<char>(linked[index])))
        return error;
    return writeExternalWeights(module, options, out);
  }
};

} // namespace

const Target &linuxSo() {
  static const LinuxSo target;
  return target;
}

} // namespace vmpack::targets
