#include "targets/wasm/WasmLink.h"
#include "targets/Linker.h"
#include "targets/Variants.h"

#include "llvm/ADT/STLExtras.h"
#include "llvm/Support/MathExtras.h"

using namespace llvm;

namespace vmpack::targets {

/// The stack lies below all data, so that an overflow traps instead of overwriting weights.
static std::vector<std::string> standaloneArguments(uint64_t stackBound) {
  uint64_t stackSize = std::max<uint64_t>(65536, stackBound == 0 ? 1 << 20 : alignTo(stackBound * 2, 65536));
  return {"--no-entry",
          "--export=vmpk_query",
          "--export=__heap_base",
          "--export-table",
          "--growable-table",
          "--stack-first",
          "-z",
          "stack-size=" + std::to_string(stackSize),
          "--gc-sections",
          "--strip-all",
          "--fatal-warnings"};
}

static std::vector<std::string> sideArguments() {
  return {"--experimental-pic", "-shared", "--no-entry", "--export=vmpk_query", "--gc-sections", "--strip-all"};
}

static Expected<std::vector<char>> buildWasm(const SharedModule &module, const Variant &variant, WasmKind kind,
                                             const BuildOptions &options, const OutputDirectory &out) {
  CodegenRequest request(variant);
  request.weights = placementOf(options);
  request.positionIndependentData = kind == WasmKind::Side;
  Expected<ObjectCode> object = compile(module, request);
  if (!object)
    return object.takeError();
  std::vector<std::string> arguments =
      kind == WasmKind::Side ? sideArguments() : standaloneArguments(object->stackSize);
  Expected<std::vector<char>> linked = link(LinkerFlavor::Wasm, arguments, object->bytes, out.scratch(), variant.name);
  if (!linked)
    return createStringError(variant.name + ": " + toString(linked.takeError()));
  return linked;
}

Error buildWasmFiles(const Target &target, const SharedModule &module, ArrayRef<Variant> variants, WasmKind kind,
                     const BuildOptions &options, OutputDirectory &out) {
  std::vector<std::vector<char>> linked(variants.size());
  Error error = forEachVariant(variants.size(), [&](size_t index) -> Error {
    announce(options, target, variants[index].name);
    Expected<std::vector<char>> made = buildWasm(module, variants[index], kind, options, out);
    if (made)
      linked[index] = std::move(*made);
    return made.takeError();
  });
  if (error)
    return inTarget(target, std::move(error));
  for (auto [variant, bytes] : zip(variants, linked))
    if (Error error = out.write((module.name + "." + variant.name + ".wasm").str(), ArrayRef<char>(bytes)))
      return error;
  return Error::success();
}

} // namespace vmpack::targets
