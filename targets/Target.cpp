#include "targets/Target.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/ADT/StringExtras.h"

#include <vector>

using namespace llvm;

namespace vmpack::targets {

#define VMPACK_TARGET(accessor) const Target &accessor();
#include "targets/Targets.def"

ArrayRef<const Target *> allTargets() {
  static const std::vector<const Target *> targets = {
#define VMPACK_TARGET(accessor) &accessor(),
#include "targets/Targets.def"
  };
  return targets;
}

Expected<const Target *> findTarget(StringRef name) {
  ArrayRef<const Target *> targets = allTargets();
  const auto *found = find_if(targets, [&](const Target *target) { return target->name() == name; });
  if (found != targets.end())
    return *found;
  auto names = map_range(targets, [](const Target *target) { return target->name(); });
  return createStringError("unknown target '" + name + "' (there are " + join(names, ", ") + ")");
}

} // namespace vmpack::targets
