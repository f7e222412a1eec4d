#include "targets/StackBound.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/CodeGen/MachineOptimizationRemarkEmitter.h"
#include "llvm/IR/DiagnosticInfo.h"
#include "llvm/IR/DiagnosticPrinter.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/Instructions.h"
#include "llvm/IR/IntrinsicInst.h"
#include "llvm/Support/MathExtras.h"
#include "llvm/Support/raw_ostream.h"

#include <optional>

using namespace llvm;

namespace vmpack::targets {

/// Bytes a call takes beside the callee's frame as LLVM counts it: the return address, outgoing arguments, and what
/// aligning the frame to a vector's size skips.
static constexpr uint64_t callOverhead = 96;

bool CodegenDiagnostics::handleDiagnostics(const DiagnosticInfo &info) {
  if (info.getKind() == DK_MachineOptimizationRemarkAnalysis) {
    const auto &remark = static_cast<const DiagnosticInfoMIROptimization &>(info);
    if (remark.getRemarkName() == "StackSize")
      for (const auto &argument : remark.getArgs()) {
        uint64_t size;
        if (argument.Key == "NumStackBytes" && !StringRef(argument.Val).getAsInteger(10, size))
          frames[remark.getFunction().getName()] = size;
      }
    return true;
  }
  if (info.getSeverity() == DS_Error) {
    raw_string_ostream stream(errors);
    DiagnosticPrinterRawOStream printer(stream);
    if (!errors.empty())
      stream << "; ";
    info.print(printer);
  }
  return true;
}

bool CodegenDiagnostics::isAnalysisRemarkEnabled(StringRef passName) const { return passName == "prologepilog"; }

namespace {

/// Longest path by depth-first search; a cycle makes the answer none.
class DepthSearch {
public:
  DepthSearch(const Module &module, const StringMap<uint64_t> &frames) : frames(frames) {
    // The query hands out invoke and measure to the host; the module itself calls neither through a pointer.
    for (const Function &function : module)
      if (!function.isDeclaration() && function.hasAddressTaken() && !function.getName().starts_with("vmpk_module_"))
        addressTaken.push_back(&function);
  }

  std::optional<uint64_t> depthOf(const Function &function) {
    if (function.isDeclaration())
      return 0;
    auto [place, isNew] = depths.try_emplace(&function, std::nullopt);
    if (!isNew)
      return place->second;
    std::optional<uint64_t> deepest = 0;
    for (const Instruction &instruction : instructions(function)) {
      std::optional<uint64_t> callee = depthBelow(instruction);
      if (!callee)
        return std::nullopt;
      deepest = std::max(*deepest, *callee);
    }
    uint64_t depth = *deepest + frames.lookup(function.getName()) + callOverhead;
    depths[&function] = depth;
    return depth;
  }

private:
  std::optional<uint64_t> depthBelow(const Instruction &instruction) {
    if (const auto *alloca = dyn_cast<AllocaInst>(&instruction))
      return alloca->isStaticAlloca() ? std::optional<uint64_t>(0) : std::nullopt;
    const auto *call = dyn_cast<CallBase>(&instruction);
    if (!call || isa<IntrinsicInst>(call))
      return 0;
    if (const Function *callee = call->getCalledFunction())
      return depthOf(*callee);
    uint64_t deepest = 0;
    for (const Function *callee : addressTaken) {
      if (callee->getFunctionType() != call->getFunctionType())
        continue;
      std::optional<uint64_t> depth = depthOf(*callee);
      if (!depth)
        return std::nullopt;
      deepest = std::max(deepest, *depth);
    }
    return deepest;
  }

  const StringMap<uint64_t> &frames;
  SmallVector<const Function *> addressTaken;
  DenseMap<const Function *, std::optional<uint64_t>> depths;
};

} // namespace

uint64_t stackBound(const Module &module, const StringMap<uint64_t> &frames) {
  DepthSearch search(module, frames);
  uint64_t deepest = 0;
  for (const Function &function : module) {
    std::optional<uint64_t> depth = search.depthOf(function);
    if (!depth)
      return 0;
    deepest = std::max(deepest, *depth);
  }
  // Any function may call one support function, which the IR does not show.
  SmallVector<GlobalValue *> support;
  collectUsedGlobalVariables(module, support, /*CompilerUsed=*/true);
  uint64_t deepestSupport = 0;
  for (const GlobalValue *value : support)
    if (const auto *function = dyn_cast<Function>(value))
      deepestSupport = std::max(deepestSupport, search.depthOf(*function).value_or(0));
  return alignTo(deepest + deepestSupport, 64);
}

} // namespace vmpack::targets
