#include "targets/Optimize.h"

#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/MC/MCSubtargetInfo.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Target/TargetOptions.h"

#include <mutex>

using namespace llvm;

namespace vmpack::targets {

static void initializeTargets() {
  static std::once_flag once;
  std::call_once(once, [] {
    InitializeAllTargetInfos();
    InitializeAllTargets();
    InitializeAllTargetMCs();
    InitializeAllAsmPrinters();
    InitializeAllAsmParsers(); // kernels may hold inline assembly
  });
}

Expected<std::unique_ptr<TargetMachine>> createMachine(const CodegenRequest &request) {
  initializeTargets();
  Triple triple(Triple::normalize(request.triple));
  std::string message;
  const llvm::Target *target = TargetRegistry::lookupTarget(triple, message);
  if (!target)
    return createStringError("unknown triple '" + request.triple + "': " + message);
  // Asked of the CPU's table first: a machine for an unknown CPU is made with a warning on standard error.
  std::unique_ptr<MCSubtargetInfo> cpus(target->createMCSubtargetInfo(triple, "", ""));
  if (!request.cpu.empty() && !(cpus && cpus->isCPUStringValid(request.cpu)))
    return createStringError("'" + request.cpu + "' is no CPU of '" + request.triple + "'");
  TargetOptions options;
  options.ExceptionModel = ExceptionHandling::None;
  options.TrapUnreachable = false;
  Reloc::Model relocation = triple.isWasm() && !request.positionIndependentData ? Reloc::Static : Reloc::PIC_;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(
      triple, request.cpu, request.features, options, relocation, std::nullopt, CodeGenOptLevel::Aggressive));
  if (!machine)
    return createStringError("no code generator for '" + request.triple + "'");
  return machine;
}

void stampFunction(llvm::Function &function, const CodegenRequest &request, const TargetMachine &machine) {
  for (StringRef name : {"target-cpu", "target-features", "tune-cpu", "probe-stack", "stack-protector-buffer-size",
                         "frame-pointer", "disable-tail-calls"})
    function.removeFnAttr(name);
  for (Attribute::AttrKind kind :
       {Attribute::StackProtect, Attribute::StackProtectReq, Attribute::StackProtectStrong, Attribute::UWTable})
    function.removeFnAttr(kind);
  if (function.isIntrinsic())
    return;
  if (!request.cpu.empty())
    function.addFnAttr("target-cpu", request.cpu);
  if (!request.features.empty())
    function.addFnAttr("target-features", request.features);
  function.addFnAttr(Attribute::NoUnwind);
  function.addFnAttr("no-builtins");
  // LLVM keeps the limits of jump tables in process-wide options that targets set and lld resets: while several
  // machines are compiled at once, code with jump tables would differ from run to run.
  function.addFnAttr("no-jump-tables", "true");
  // Apple's crash reporter walks frame pointers; Windows' stack probe is a library call.
  if (machine.getTargetTriple().isOSDarwin())
    function.addFnAttr("frame-pointer", "non-leaf");
  if (machine.getTargetTriple().isOSWindows())
    function.addFnAttr("no-stack-arg-probe");
}

namespace {

/// The new pass manager's four analysis managers, wired for a machine that has no C library.
struct Pipeline {
  TargetLibraryInfoImpl library;
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  PassBuilder builder;

  static PipelineTuningOptions tuning() {
    PipelineTuningOptions options;
    options.LoopVectorization = true;
    options.SLPVectorization = true;
    options.LoopInterleaving = true;
    options.LoopUnrolling = true;
    return options;
  }

  explicit Pipeline(TargetMachine &machine) : library(machine.getTargetTriple()), builder(&machine, tuning()) {
    library.disableAllFunctions();
    functions.registerPass([&] { return TargetLibraryAnalysis(library); });
    builder.registerModuleAnalyses(modules);
    builder.registerCGSCCAnalyses(components);
    builder.registerFunctionAnalyses(functions);
    builder.registerLoopAnalyses(loops);
    builder.crossRegisterProxies(loops, functions, components, modules);
  }
};

} // namespace

void optimizeModule(Module &module, TargetMachine &machine) {
  Pipeline pipeline(machine);
  pipeline.builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, pipeline.modules);
}

void optimizeFunction(llvm::Function &function, TargetMachine &machine) {
  Pipeline pipeline(machine);
  pipeline.builder.buildFunctionSimplificationPipeline(OptimizationLevel::O2, ThinOrFullLTOPhase::None)
      .run(function, pipeline.functions);
}

Expected<std::vector<char>> emitObject(Module &module, TargetMachine &machine) {
  SmallVector<char, 0> bytes;
  raw_svector_ostream stream(bytes);
  legacy::PassManager passes;
  TargetLibraryInfoImpl library(machine.getTargetTriple());
  library.disableAllFunctions();
  passes.add(new TargetLibraryInfoWrapperPass(library));
  if (machine.addPassesToEmitFile(passes, stream, nullptr, CodeGenFileType::ObjectFile))
    return createStringError("LLVM cannot write object files for '" + machine.getTargetTriple().str() + "'");
  passes.run(module);
  return std::vector<char>(bytes.begin(), bytes.end());
}

} // namespace vmpack::targets
