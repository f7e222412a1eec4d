// iOS and macOS: Mach-O objects in Darwin archives. A device and a simulator slice are two platforms of one CPU, so
// they are two files; code for one platform's several CPUs is one fat file.
#include "targets/static/StaticBuild.h"

namespace vmpack::targets {

const Target &iosStatic() {
  static const StaticTarget target(
      "ios-static", "archive and C header for iOS: device (arm64) and simulator (arm64, x86_64)",
      {{"ios-arm64", {{"ios-arm64", "arm64-apple-ios13.0.0", "apple-a7", "", "armv8.0"}}},
       {"ios-arm64_x86_64-simulator",
        {{"ios-arm64-simulator", "arm64-apple-ios14.0.0-simulator", "apple-m1", "", "armv8.0"},
         {"ios-x86_64-simulator", "x86_64-apple-ios13.0.0-simulator", "x86-64-v2", "", "x86-64-v2"}}}});
  return target;
}

const Target &macosStatic() {
  static const StaticTarget target("macos-static", "fat archive and C header for macOS (arm64, x86_64)",
                                   {{"macos-arm64_x86_64",
                                     {{"macos-arm64", "arm64-apple-macosx11.0.0", "apple-m1", "", "armv8.0"},
                                      {"macos-x86_64", "x86_64-apple-macosx10.15.0", "x86-64-v2", "", "x86-64-v2"}}}});
  return target;
}

} // namespace vmpack::targets
