#include "targets/Codegen.h"
#include "targets/KernelLibrary.h"
#include "targets/ModuleData.h"
#include "targets/ObjectCheck.h"
#include "targets/Optimize.h"
#include "targets/Runtimeless.h"
#include "targets/StackBound.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/IR/DebugInfo.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/Module.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Target/TargetMachine.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/Utils/Cloning.h"
#include "llvm/Transforms/Utils/ModuleUtils.h"

using namespace llvm;

namespace vmpack::targets {
namespace {

/// One compilation, a method a step. The context is fresh, so that compilations share nothing.
class Compilation {
public:
  Compilation(const SharedModule &shared, const CodegenRequest &request)
      : shared(shared), request(request), diagnostics(new CodegenDiagnostics) {
    context.setDiagnosticHandler(std::unique_ptr<DiagnosticHandler>(diagnostics));
  }

  Error parse();
  Error linkKernels();
  Error defineExports();
  Error optimize();
  void addData();
  Expected<ObjectCode> emit();

private:
  Error diagnosed(const Twine &step);
  Error checkDeclarations();
  std::vector<UndefinedSymbol> expectedMemoryCalls() const;
  Error linkSupport(ArrayRef<UndefinedSymbol> undefined);
  void defineBzero(StringRef name);
  void makeInternal();

  const SharedModule &shared;
  const CodegenRequest &request;
  LLVMContext context;
  CodegenDiagnostics *diagnostics; // owned by the context
  std::unique_ptr<TargetMachine> machine;
  std::unique_ptr<Module> module;
  std::vector<std::string> exported;
};

Error Compilation::diagnosed(const Twine &step) {
  return createStringError(step + (diagnostics->errors.empty() ? "" : ": " + diagnostics->errors));
}

Error Compilation::parse() {
  Expected<std::unique_ptr<TargetMachine>> created = createMachine(request);
  if (!created)
    return created.takeError();
  machine = std::move(*created);
  // Triple and layout come with the very first read: everything after may fold sizes by them.
  ParserCallbacks callbacks(
      [&](StringRef, StringRef) { return machine->createDataLayout().getStringRepresentation(); });
  StringRef bytes(shared.bitcode.data(), shared.bitcode.size());
  Expected<std::unique_ptr<Module>> parsed =
      parseBitcodeFile(MemoryBufferRef(bytes, shared.name), context, std::move(callbacks));
  if (!parsed)
    return parsed.takeError();
  module = std::move(*parsed);
  module->setTargetTriple(machine->getTargetTriple());
  module->setDataLayout(machine->createDataLayout());
  module->setModuleIdentifier(shared.name);
  module->setSourceFileName(shared.name);
  StripDebugInfo(*module);
  if (verifyModule(*module))
    return createStringError("the shared module's bitcode is not valid");
  return Error::success();
}

Error Compilation::linkKernels() {
  Expected<std::unique_ptr<Module>> kernels = loadKernels(request.level, *module);
  if (!kernels)
    return kernels.takeError();
  if (Linker::linkModules(*module, std::move(*kernels), Linker::LinkOnlyNeeded))
    return diagnosed("cannot link the kernels");
  StripDebugInfo(*module);
  // One copy of a large kernel serves all its callers: inlined into each it would be optimized, and shipped, that
  // often.
  constexpr unsigned largestInlined = 100;
  for (llvm::Function &function : *module)
    if (function.hasFnAttribute(kernelAttribute) && !function.hasFnAttribute(Attribute::AlwaysInline) &&
        function.hasExternalLinkage() && function.getInstructionCount() > largestInlined)
      function.addFnAttr(Attribute::NoInline);
  return Error::success();
}

Error Compilation::defineExports() {
  declareModuleData(*module, shared, request.weights);
  llvm::Function *query = module->getFunction("vmpk_query");
  if (!query || query->isDeclaration())
    return createStringError("the shared module defines no vmpk_query");
  if (request.runtimeless) {
    exported = addRunFunctions(*module, shared, request.weights);
  } else {
    query->setName(request.querySymbol);
    exported = {request.querySymbol};
  }
  makeInternal();
  return Error::success();
}

/// All but the exports become internal, and lose what an earlier compiler said about the CPU.
void Compilation::makeInternal() {
  for (StringRef list : {"llvm.used", "llvm.compiler.used"})
    if (GlobalVariable *variable = module->getNamedGlobal(list))
      variable->eraseFromParent();
  internalizeModule(*module, [&](const GlobalValue &value) {
    return is_contained(exported, value.getName().str()) || isModuleData(value);
  });
  for (llvm::Function &function : *module)
    stampFunction(function, request, *machine);
  for (const std::string &name : exported)
    module->getFunction(name)->setVisibility(GlobalValue::DefaultVisibility);
}

Error Compilation::optimize() {
  optimizeModule(*module, *machine);
  if (request.runtimeless)
    if (Error error = checkNoIndirectCalls(*module))
      return error;
  return checkDeclarations();
}

/// A function that is still only declared is a kernel which this level lacks, or a bug of the translation's.
Error Compilation::checkDeclarations() {
  std::string missing;
  for (const llvm::Function &function : *module) {
    if (!function.isDeclaration() || function.isIntrinsic() || function.use_empty())
      continue;
    missing += (missing.empty() ? "'" : ", '") + function.getName().str() + "'";
    for (const User *user : function.users())
      if (const auto *instruction = dyn_cast<Instruction>(user)) {
        missing += " (called by '" + instruction->getFunction()->getName().str() + "')";
        break;
      }
  }
  if (missing.empty())
    return Error::success();
  return createStringError("nothing provides " + missing + " at kernel level '" + request.level + "'");
}

void Compilation::addData() { defineModuleData(*module, shared, request.weights); }

/// The calls that memory intrinsics of large or unknown size will become, so that the first object made is mostly the
/// last. Not for machines that have instructions for it (wasm) or names of their own (ARM).
std::vector<UndefinedSymbol> Compilation::expectedMemoryCalls() const {
  std::vector<UndefinedSymbol> expected;
  const Triple &triple = machine->getTargetTriple();
  if (triple.isARM() || triple.isThumb() || triple.isWasm())
    return expected;
  for (const llvm::Function &function : *module)
    for (const Instruction &instruction : instructions(function)) {
      const auto *call = dyn_cast<MemIntrinsic>(&instruction);
      const auto *length = call ? dyn_cast<ConstantInt>(call->getLength()) : nullptr;
      if (!call || (length && length->getLimitedValue() <= 256))
        continue;
      StringRef name = isa<MemSetInst>(call) ? "memset" : isa<MemMoveInst>(call) ? "memmove" : "memcpy";
      if (none_of(expected, [&](const UndefinedSymbol &symbol) { return symbol.name == name; }))
        expected.push_back({name.str(), {}});
    }
  return expected;
}

/// What LLVM calls on Apple's systems to set memory to zero.
void Compilation::defineBzero(StringRef name) {
  Type *size = machine->createDataLayout().getIntPtrType(context);
  auto *pointer = PointerType::get(context, 0);
  auto *i32 = Type::getInt32Ty(context);
  auto *function =
      cast<llvm::Function>(module->getOrInsertFunction(name, Type::getVoidTy(context), pointer, size).getCallee());
  IRBuilder<> builder(BasicBlock::Create(context, "", function));
  FunctionCallee memset = module->getOrInsertFunction("memset", pointer, pointer, i32, size);
  builder.CreateCall(memset, {function->getArg(0), builder.getInt32(0), function->getArg(1)});
  builder.CreateRetVoid();
}

Error Compilation::linkSupport(ArrayRef<UndefinedSymbol> undefined) {
  Expected<std::unique_ptr<Module>> support = loadSupport(request.level, *module);
  if (!support)
    return support.takeError();
  std::string missing;
  SmallVector<StringRef> provided;
  for (const UndefinedSymbol &symbol : undefined) {
    if (*support && (symbol.name == "bzero" || symbol.name == "__bzero")) {
      defineBzero(symbol.name);
      provided.push_back(symbol.name);
      continue;
    }
    llvm::Function *function = *support ? (*support)->getFunction(symbol.name) : nullptr;
    if (function && !function->isDeclaration() && !module->getFunction(symbol.name)) {
      module->getOrInsertFunction(symbol.name, function->getFunctionType());
      provided.push_back(symbol.name);
      continue;
    }
    missing += (missing.empty() ? "'" : "; '") + symbol.name + "'";
    if (!symbol.users.empty())
      missing += " in '" + join(symbol.users, "', '") + "'";
  }
  if (!missing.empty())
    return createStringError("the code needs symbols that nothing provides: " + missing);
  if (Linker::linkModules(*module, std::move(*support), Linker::LinkOnlyNeeded))
    return diagnosed("cannot link the support functions");
  StripDebugInfo(*module);
  // Code that is not there yet will call them: hidden from other objects, but not to be dropped.
  SmallVector<GlobalValue *> keep;
  for (llvm::Function &function : *module)
    if (!function.isDeclaration() && !function.hasLocalLinkage() && !is_contained(exported, function.getName().str())) {
      function.setVisibility(GlobalValue::DefaultVisibility);
      function.setLinkage(GlobalValue::InternalLinkage);
      stampFunction(function, request, *machine);
      optimizeFunction(function, *machine);
      if (is_contained(provided, function.getName()))
        keep.push_back(&function);
    }
  appendToCompilerUsed(*module, keep);
  return Error::success();
}

Expected<ObjectCode> Compilation::emit() {
  if (std::vector<UndefinedSymbol> expected = expectedMemoryCalls(); !expected.empty())
    if (Error error = linkSupport(expected))
      return error;
  // Each round can bring in functions that need others in turn; four is more than any library nests.
  for (unsigned round = 0; round < 4; ++round) {
    diagnostics->frames.clear();
    std::unique_ptr<Module> copy = CloneModule(*module);
    Expected<std::vector<char>> bytes = emitObject(*copy, *machine);
    if (!bytes)
      return bytes.takeError();
    if (!diagnostics->errors.empty())
      return diagnosed("code generation failed");
    Expected<std::vector<UndefinedSymbol>> undefined = undefinedSymbols(*bytes);
    if (!undefined)
      return undefined.takeError();
    if (undefined->empty()) {
      ObjectCode object{std::move(*bytes), stackBound(*module, diagnostics->frames)};
      if (!request.runtimeless)
        if (Error error = patchStackSize(object.bytes, shared, object.stackSize))
          return error;
      return object;
    }
    if (Error error = linkSupport(*undefined))
      return error;
  }
  return createStringError("the support functions of kernel level '" + request.level + "' need each other without end");
}

} // namespace

Expected<ObjectCode> compile(const SharedModule &shared, const CodegenRequest &request) {
  auto located = [&](Error error) { return createStringError(request.name + ": " + toString(std::move(error))); };
  if (request.weights == WeightsPlacement::Embedded && shared.weights.size() > maxEmbeddedWeights)
    return located(createStringError("the weights are " + Twine(shared.weights.size()) + " bytes; at most " +
                                     Twine(maxEmbeddedWeights) + " can be embedded: use --weights=external"));
  Compilation compilation(shared, request);
  for (auto step :
       {&Compilation::parse, &Compilation::linkKernels, &Compilation::defineExports, &Compilation::optimize})
    if (Error error = (compilation.*step)())
      return located(std::move(error));
  compilation.addData();
  Expected<ObjectCode> object = compilation.emit();
  if (!object)
    return located(object.takeError());
  return object;
}

} // namespace vmpack::targets
