#include "targets/static/StaticBuild.h"

namespace vmpack::targets {

const Target &linuxStatic() {
  static const StaticTarget target(
      "linux-static", "archives and C header for Linux (x86-64-v2, x86-64-v3, aarch64)",
      {{"x86-64-v2", {{"x86-64-v2", "x86_64-unknown-linux-gnu", "x86-64-v2", "", "x86-64-v2"}}},
       {"x86-64-v3", {{"x86-64-v3", "x86_64-unknown-linux-gnu", "x86-64-v3", "", "x86-64-v3"}}},
       {"aarch64", {{"aarch64", "aarch64-unknown-linux-gnu", "generic", "+neon", "armv8.0"}}}});
  return target;
}

} // namespace vmpack::targets
