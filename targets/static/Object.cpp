// One object and header for any machine that LLVM knows, for those who bring their own linker.
#include "targets/Optimize.h"
#include "targets/Variants.h"
#include "targets/static/StaticBuild.h"

#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/TargetParser/Host.h"
#include "llvm/TargetParser/Triple.h"

using namespace llvm;

namespace vmpack::targets {

/// The best kernel level that `machine` is sure to run.
static StringRef levelFor(const TargetMachine &machine) {
  const MCSubtargetInfo &cpu = *machine.getMCSubtargetInfo();
  switch (machine.getTargetTriple().getArch()) {
  case Triple::x86_64:
    if (cpu.checkFeatures("+avx512f,+avx512bw,+avx512cd,+avx512dq,+avx512vl,+avx2,+fma"))
      return "x86-64-v4";
    if (cpu.checkFeatures("+avx2,+fma,+f16c,+bmi,+bmi2,+lzcnt,+movbe"))
      return "x86-64-v3";
    return cpu.checkFeatures("+sse4.2,+popcnt") ? "x86-64-v2" : "generic";
  case Triple::x86:
    return cpu.checkFeatures("+sse2") ? "x86" : "generic";
  case Triple::aarch64:
    return "armv8.0";
  case Triple::arm:
  case Triple::thumb:
    return cpu.checkFeatures("+d32") ? "armv7" : "generic";
  case Triple::wasm32:
    if (cpu.checkFeatures("+relaxed-simd"))
      return "wasm-relaxed-simd";
    return cpu.checkFeatures("+simd128") ? "wasm-simd128" : "wasm-baseline";
  default:
    return "generic";
  }
}

namespace {

class Object final : public Target {
public:
  StringRef name() const override { return "object"; }
  StringRef description() const override { return "one object file and C header for --triple and --cpu"; }

  Error build(const SharedModule &module, const BuildOptions &options, OutputDirectory &out) const override {
    CodegenRequest request;
    request.triple = Triple::normalize(options.triple.empty() ? sys::getProcessTriple() : options.triple);
    request.name = request.triple;
    request.cpu = options.cpu;
    Triple triple(request.triple);
    if (triple.isWasm() && request.cpu.empty())
      request.cpu = "mvp"; // LLVM's own default is newer than some browsers
    announce(options, *this, request.name);
    Expected<std::unique_ptr<TargetMachine>> machine = createMachine(request);
    if (!machine)
      return inTarget(*this, machine.takeError());
    if (!(*machine)->createDataLayout().isLittleEndian())
      return inTarget(*this, createStringError("'" + request.triple + "' is big-endian, which modules are not"));
    request.level = levelFor(**machine).str();
    if (request.level == "armv7")
      request.features = "+neon"; // LLVM leaves it to the user, but no CPU has the 32 registers without it
    Expected<ObjectCode> object = compileStatic(module, request, options);
    if (!object)
      return inTarget(*this, object.takeError());
    if (Error error = out.write(module.name + ".o", ArrayRef<char>(object->bytes)))
      return error;
    if (Error error = out.write(module.name + ".h", StringRef(headerFor(module, options, object->stackSize))))
      return error;
    return writeExternalWeights(module, options, out);
  }
};

} // namespace

const Target &objectTarget() {
  static const Object target;
  return target;
}

} // namespace vmpack::targets
