#include "targets/shared/ElfLink.h"
#include "targets/Linker.h"
#include "targets/Variants.h"

using namespace llvm;

namespace vmpack::targets {

Expected<std::vector<char>> buildSharedObject(const SharedModule &module, const Variant &variant,
                                              const BuildOptions &options, StringRef soname,
                                              const OutputDirectory &out) {
  CodegenRequest request(variant);
  request.weights = placementOf(options);
  Expected<ObjectCode> object = compile(module, request);
  if (!object)
    return object.takeError();
  // 16 KiB pages are what new Android devices have. Both hash styles: loaders before Android 6 know only sysv's.
  std::vector<std::string> arguments = {"-shared",
                                        "-soname",
                                        soname.str(),
                                        "-z",
                                        "max-page-size=16384",
                                        "-z",
                                        "relro",
                                        "-z",
                                        "now",
                                        "-z",
                                        "noexecstack",
                                        "-z",
                                        "text",
                                        "-z",
                                        "defs",
                                        "--hash-style=both",
                                        "--build-id=sha1",
                                        "--gc-sections",
                                        "--strip-all",
                                        "--no-undefined-version",
                                        "--fatal-warnings"};
  Expected<std::vector<char>> linked = link(LinkerFlavor::Elf, arguments, object->bytes, out.scratch(), variant.name);
  if (!linked)
    return createStringError(variant.name + ": " + toString(linked.takeError()));
  return linked;
}

} // namespace vmpack::targets
