//===- Translation.cpp - from the LLVM dialect to the shared module -------------------------------------===//
//
// MLIR ends here. The module's own functions meet the accessors and the front door of the ABI (compiled from
// runtime/abi/entry.c when vmpack was built), everything that names a platform is removed, and the digest is taken.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/translation/Translation.h"
#include "packager/dialect/Metadata.h"
#include "packager/dialect/Vmpk.h"
#include "packager/translation/ModuleTable.h"

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Dialect/Builtin/BuiltinToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Dialect/LLVMIR/LLVMToLLVMIRTranslation.h"
#include "mlir/Target/LLVMIR/Export.h"

#include "llvm/Bitcode/BitcodeReader.h"
#include "llvm/Bitcode/BitcodeWriter.h"
#include "llvm/IR/Verifier.h"
#include "llvm/Linker/Linker.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Transforms/IPO/AlwaysInliner.h"
#include "llvm/Transforms/IPO/GlobalDCE.h"
#include "llvm/Transforms/IPO/Internalize.h"
#include "llvm/Transforms/IPO/MergeFunctions.h"
#include "llvm/Transforms/Utils/Mem2Reg.h"

extern "C" {
// runtime/abi/entry.c as bitcode; see CMakeLists.txt.
extern const char vmpack_entry_bitcode[];
extern const char vmpack_entry_bitcode_end[];
}

using namespace mlir;

namespace vmpack::translation {
namespace {

llvm::Error failure(const llvm::Twine &message) {
  return llvm::createStringError(llvm::inconvertibleErrorCode(), message);
}

/// A valid C identifier made of `name`: other characters become '_', and a leading digit gets one before it.
std::string identifierOf(StringRef name) {
  std::string result;
  for (char character : name)
    result += llvm::isAlnum(character) ? character : '_';
  if (result.empty() || llvm::isDigit(result.front()))
    result.insert(result.begin(), '_');
  return result;
}

std::vector<targets::Tensor> tensorsOf(ArrayAttr described) {
  std::vector<targets::Tensor> tensors;
  for (auto tensor : described.getAsRange<DictionaryAttr>()) {
    targets::Tensor &added = tensors.emplace_back();
    added.name = cast<StringAttr>(tensor.get("name")).str();
    added.dtype = cast<IntegerAttr>(tensor.get("dtype")).getInt();
    for (auto dim : cast<ArrayAttr>(tensor.get("dims")).getAsRange<IntegerAttr>())
      added.dims.push_back(dim.getInt());
  }
  return tensors;
}

int64_t integerOf(DictionaryAttr dictionary, StringRef name) {
  return cast<IntegerAttr>(dictionary.get(name)).getInt();
}

targets::Function functionOf(LLVM::LLVMFuncOp schedule) {
  auto entry = schedule->getAttrOfType<DictionaryAttr>(dialect::entryAttr);
  targets::Function function;
  function.name = cast<StringAttr>(entry.get("name")).str();
  function.inputs = tensorsOf(cast<ArrayAttr>(entry.get("inputs")));
  function.outputs = tensorsOf(cast<ArrayAttr>(entry.get("outputs")));
  for (auto symbol : cast<ArrayAttr>(entry.get("symbols")).getAsRange<DictionaryAttr>())
    function.dims.push_back(
        {cast<StringAttr>(symbol.get("name")).str(), integerOf(symbol, "minimum"), integerOf(symbol, "maximum")});
  // -1, measured, is UINT64_MAX in the table.
  function.arenaSize = uint64_t(schedule->getAttrOfType<IntegerAttr>(dialect::arenaSizeAttr).getInt());
  return function;
}

/// Moves what travels beside the code out of the module.
void takeMetadata(ModuleOp module, targets::SharedModule &shared) {
  for (auto function : module.getOps<LLVM::LLVMFuncOp>())
    if (function->hasAttr(dialect::scheduleAttr))
      shared.functions.push_back(functionOf(function));
  for (auto dispatch : module->getAttrOfType<ArrayAttr>(dialect::dispatchesAttr).getAsRange<DictionaryAttr>())
    shared.dispatches.push_back({cast<StringAttr>(dispatch.get("name")).str(),
                                 cast<StringAttr>(dispatch.get("location")).str(),
                                 uint64_t(integerOf(dispatch, "flops")), uint64_t(integerOf(dispatch, "bytes"))});
  shared.weights.resize(module->getAttrOfType<IntegerAttr>(dialect::weightsSizeAttr).getInt());
  for (auto weight : llvm::make_early_inc_range(module.getOps<dialect::WeightOp>())) {
    uint64_t size = dialect::byteSize(weight.getValue().getShapedType());
    char *place = reinterpret_cast<char *>(shared.weights.data()) + weight.getOffset();
    dialect::writeElements(weight.getValue(), MutableArrayRef<char>(place, size));
    weight.erase();
  }
}

/// Removes whatever names the platform that a function was compiled for.
void stripPlatform(llvm::Module &module) {
  module.setTargetTriple(llvm::Triple());
  module.setDataLayout(llvm::DataLayout());
  for (llvm::Function &function : module) {
    for (const char *attribute : {"target-cpu", "target-features", "tune-cpu", "stack-protector-buffer-size",
                                  "no-trapping-math", "frame-pointer", "min-legal-vector-width"})
      function.removeFnAttr(attribute);
    function.addFnAttr(llvm::Attribute::NoUnwind);
  }
  for (const char *name : {"llvm.module.flags", "llvm.ident", "llvm.errno.tbaa"})
    if (llvm::NamedMDNode *node = module.getNamedMetadata(name))
      module.eraseNamedMetadata(node);
}

llvm::Error linkEntry(llvm::Module &module) {
  llvm::MemoryBufferRef bitcode(StringRef(vmpack_entry_bitcode, vmpack_entry_bitcode_end - vmpack_entry_bitcode),
                                "entry");
  auto entry = llvm::parseBitcodeFile(bitcode, module.getContext());
  if (!entry)
    return entry.takeError();
  stripPlatform(**entry);
  if (llvm::Linker::linkModules(module, std::move(*entry)))
    return failure("the ABI's accessors do not link");
  stripPlatform(module);
  return llvm::Error::success();
}

/// Inlines the accessors, with their variables in registers, merges dispatches that are alike (the layers of a model
/// repeat), and drops what vmpk_query does not reach. No pass that could fold a data layout runs.
void tidy(llvm::Module &module) {
  llvm::internalizeModule(module, [](const llvm::GlobalValue &value) { return value.getName() == "vmpk_query"; });
  for (llvm::Function &function : module)
    if (function.hasLocalLinkage())
      function.setUnnamedAddr(llvm::GlobalValue::UnnamedAddr::Global);
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager callGraph;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(callGraph);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, callGraph, modules);
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AlwaysInlinerPass(/*InsertLifetime=*/false));
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::PromotePass()));
  passes.addPass(llvm::GlobalDCEPass());
  passes.addPass(llvm::MergeFunctionsPass());
  passes.run(module, modules);
}

} // namespace

llvm::Expected<targets::SharedModule> translate(ModuleOp module, StringRef name) {
  targets::SharedModule shared;
  shared.name = identifierOf(name);
  takeMetadata(module, shared);

  llvm::LLVMContext context;
  std::unique_ptr<llvm::Module> code = translateModuleToLLVMIR(module, context, shared.name);
  if (!code)
    return failure("the LLVM dialect does not translate to LLVM IR");
  code->setSourceFileName(shared.name);
  if (llvm::Error error = linkEntry(*code))
    return error;
  tidy(*code);
  std::string broken;
  llvm::raw_string_ostream stream(broken);
  if (llvm::verifyModule(*code, &stream))
    return failure("the shared module is broken: " + broken);

  llvm::SmallVector<char> bitcode;
  llvm::BitcodeWriter writer(bitcode);
  writer.writeModule(*code);
  writer.writeSymtab();
  writer.writeStrtab();
  shared.bitcode.assign(bitcode.begin(), bitcode.end());
  auto digest = [](ArrayRef<uint8_t> bytes) { return llvm::SHA256::hash(bytes); };
  shared.digest = digest({reinterpret_cast<const uint8_t *>(shared.bitcode.data()), shared.bitcode.size()});
  shared.weightsDigest = digest(shared.weights);
  shared.table = makeModuleTable(shared);
  return shared;
}

void registerDialects(DialectRegistry &registry) {
  registerBuiltinDialectTranslation(registry);
  registerLLVMDialectTranslation(registry);
}

} // namespace vmpack::translation
