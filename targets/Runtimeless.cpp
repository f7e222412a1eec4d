#include "targets/Runtimeless.h"
#include "targets/KernelLibrary.h"
#include "targets/Names.h"

#include "vmpk/abi.h"

#include "llvm/ADT/SmallPtrSet.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/InstIterator.h"
#include "llvm/IR/IntrinsicInst.h"

using namespace llvm;

namespace vmpack::targets {

std::vector<std::string> functionPrefixes(const SharedModule &module) {
  if (module.functions.size() == 1)
    return {module.name};
  NameScope scope;
  std::vector<std::string> prefixes;
  for (const Function &function : module.functions)
    prefixes.push_back(module.name + "_" + scope.unique(function.name));
  return prefixes;
}

bool needsMeasure(const Function &function) {
  auto isComputed = [](const Tensor &tensor) { return is_contained(tensor.dims, VMPK_DIM_COMPUTED); };
  return function.arenaSize == UINT64_MAX || any_of(function.outputs, isComputed);
}

namespace {

/// Writes one PREFIX_run function.
class RunFunction {
public:
  RunFunction(Module &module, const Function &function, uint32_t ordinal, bool hasWeights)
      : module(module), function(function), ordinal(ordinal), takesWeights(hasWeights), builder(module.getContext()),
        pointer(builder.getPtrTy()), i32(builder.getInt32Ty()), i64(builder.getInt64Ty()) {}

  void buildRun(StringRef name) {
    SmallVector<Type *> parameters(function.inputs.size() + function.outputs.size(), pointer);
    parameters.append(function.dims.size(), i64);
    parameters.append(takesWeights ? 2 : 1, pointer);
    begin(name, parameters);
    Value *arena = run->getArg(parameters.size() - 1);
    size_t firstDim = function.inputs.size() + function.outputs.size();
    dims = packDims(firstDim);
    if (function.arenaSize != 0)
      returnUnless(isAligned(arena), VMPK_STATUS_INVALID_ARGUMENT);
    Value *call = slots(sizeof(vmpk_call_t));
    storeAt(call, offsetof(vmpk_call_t, size), builder.getInt32(sizeof(vmpk_call_t)));
    storeAt(call, offsetof(vmpk_call_t, function), builder.getInt32(ordinal));
    storePointer(call, offsetof(vmpk_call_t, host), ConstantPointerNull::get(pointer));
    storePointer(call, offsetof(vmpk_call_t, arena), arena);
    storeAt(call, offsetof(vmpk_call_t, arena_size), builder.getInt64(function.arenaSize));
    storePointer(call, offsetof(vmpk_call_t, weights), weightsPointer(parameters.size() - 2));
    storePointer(call, offsetof(vmpk_call_t, imports), ConstantPointerNull::get(pointer));
    storePointer(call, offsetof(vmpk_call_t, dims), dims);
    storePointer(call, offsetof(vmpk_call_t, inputs), packBuffers(function.inputs, 0));
    storePointer(call, offsetof(vmpk_call_t, outputs), packBuffers(function.outputs, function.inputs.size()));
    FunctionCallee invoke = module.getOrInsertFunction("vmpk_module_invoke", i32, pointer);
    builder.CreateRet(builder.CreateCall(invoke, {call}));
  }

  /// int PREFIX_measure(dims…, uint64_t *arena_size, int64_t *output_dims): both may be NULL.
  void buildMeasure(StringRef name) {
    size_t count = function.dims.size();
    SmallVector<Type *> parameters(count, i64);
    parameters.append(2, pointer);
    begin(name, parameters);
    dims = packDims(0);
    Value *measured = slots(sizeof(vmpk_measured_t));
    storeAt(measured, offsetof(vmpk_measured_t, size), builder.getInt32(sizeof(vmpk_measured_t)));
    storeAt(measured, offsetof(vmpk_measured_t, arena_size), builder.getInt64(0));
    storePointer(measured, offsetof(vmpk_measured_t, output_dims), run->getArg(count + 1));
    FunctionCallee measure = module.getOrInsertFunction("vmpk_module_measure", i32, i32, pointer, pointer);
    Value *status = builder.CreateCall(measure, {builder.getInt32(ordinal), dims, measured});
    auto *store = BasicBlock::Create(module.getContext(), "", run),
         *end = BasicBlock::Create(module.getContext(), "", run);
    builder.CreateCondBr(builder.CreateIsNull(run->getArg(count)), end, store);
    builder.SetInsertPoint(store);
    builder.CreateStore(builder.CreateLoad(i64, at(measured, offsetof(vmpk_measured_t, arena_size))),
                        run->getArg(count));
    builder.CreateBr(end);
    builder.SetInsertPoint(end);
    builder.CreateRet(status);
  }

private:
  void begin(StringRef name, ArrayRef<Type *> parameters) {
    run = llvm::Function::Create(FunctionType::get(i32, parameters, false), GlobalValue::ExternalLinkage, name, module);
    builder.SetInsertPoint(BasicBlock::Create(module.getContext(), "", run));
  }

  Value *slots(uint64_t size) {
    auto *memory = builder.CreateAlloca(ArrayType::get(builder.getInt8Ty(), size));
    memory->setAlignment(Align(8));
    return memory;
  }
  Value *at(Value *base, uint64_t offset) {
    return builder.CreateConstInBoundsGEP1_64(builder.getInt8Ty(), base, offset);
  }
  void storeAt(Value *base, uint64_t offset, Value *value) { builder.CreateStore(value, at(base, offset)); }
  /// A pointer in an 8-byte slot: on 32-bit machines the upper half is zero.
  void storePointer(Value *base, uint64_t offset, Value *value) {
    if (module.getDataLayout().getPointerSize() < 8)
      storeAt(base, offset + 4, builder.getInt32(0));
    storeAt(base, offset, value);
  }

  void returnUnless(Value *condition, int32_t status) {
    auto *good = BasicBlock::Create(module.getContext(), "", run),
         *bad = BasicBlock::Create(module.getContext(), "", run);
    builder.CreateCondBr(condition, good, bad);
    builder.SetInsertPoint(bad);
    builder.CreateRet(builder.getInt32(status));
    builder.SetInsertPoint(good);
  }

  Value *isAligned(Value *address) {
    Value *bits = builder.CreatePtrToInt(address, i64);
    Value *aligned = builder.CreateIsNull(builder.CreateAnd(bits, VMPK_ALIGNMENT - 1));
    return builder.CreateAnd(aligned, builder.CreateIsNotNull(address));
  }

  Value *packDims(size_t firstArgument) {
    if (function.dims.empty())
      return ConstantPointerNull::get(pointer);
    for (auto [index, dim] : enumerate(function.dims)) {
      Value *value = run->getArg(firstArgument + index);
      Value *inside = builder.CreateAnd(builder.CreateICmpSGE(value, builder.getInt64(dim.minimum)),
                                        builder.CreateICmpSLE(value, builder.getInt64(dim.maximum)));
      returnUnless(inside, VMPK_STATUS_OUT_OF_RANGE);
    }
    Value *packed = slots(8 * function.dims.size());
    for (size_t index = 0; index < function.dims.size(); ++index)
      storeAt(packed, 8 * index, run->getArg(firstArgument + index));
    return packed;
  }

  /// Bytes of a tensor; 0 for one whose dims only the module can compute.
  Value *bytesOf(const Tensor &tensor) {
    Value *bytes = builder.getInt64(dtypeSize(tensor.dtype));
    for (int64_t dim : tensor.dims) {
      if (dim == VMPK_DIM_COMPUTED)
        return builder.getInt64(0);
      Value *size = builder.getInt64(dim);
      if (dim < 0)
        size = builder.CreateLoad(i64, at(dims, 8 * (-1 - dim)));
      bytes = builder.CreateMul(bytes, size);
    }
    return bytes;
  }

  Value *packBuffers(ArrayRef<Tensor> tensors, size_t firstArgument) {
    Value *buffers = slots(sizeof(vmpk_buffer_t) * std::max<size_t>(1, tensors.size()));
    for (auto [index, tensor] : enumerate(tensors)) {
      uint64_t base = sizeof(vmpk_buffer_t) * index;
      storePointer(buffers, base + offsetof(vmpk_buffer_t, data), run->getArg(firstArgument + index));
      storeAt(buffers, base + offsetof(vmpk_buffer_t, size), bytesOf(tensor));
    }
    return buffers;
  }

  Value *weightsPointer(size_t argument) {
    if (takesWeights)
      return run->getArg(argument);
    return builder.CreateCall(module.getOrInsertFunction("vmpk_module_weights", pointer));
  }

  Module &module;
  const Function &function;
  uint32_t ordinal;
  bool takesWeights;
  IRBuilder<> builder;
  PointerType *pointer;
  Type *i32, *i64;
  llvm::Function *run = nullptr;
  Value *dims = nullptr;
};

} // namespace

/// Tells the schedule that there is no host: every load of `call->host` is NULL. The optimizer cannot find it out where
/// a kernel's stores stand between two loads.
static void dropHost(llvm::Function &function, Argument &call) {
  const DataLayout &layout = function.getParent()->getDataLayout();
  for (Instruction &instruction : make_early_inc_range(instructions(function))) {
    if (auto *load = dyn_cast<LoadInst>(&instruction)) {
      APInt offset(layout.getIndexTypeSizeInBits(load->getPointerOperandType()), 0);
      if (load->getPointerOperand()->stripAndAccumulateConstantOffsets(layout, offset, true) != &call ||
          offset != offsetof(vmpk_call_t, host))
        continue;
      load->replaceAllUsesWith(Constant::getNullValue(load->getType()));
      load->eraseFromParent();
    } else if (auto *inner = dyn_cast<CallBase>(&instruction)) {
      llvm::Function *callee = inner->getCalledFunction();
      if (!callee || callee->isDeclaration())
        continue;
      for (Argument &argument : callee->args())
        if (inner->getArgOperand(argument.getArgNo()) == &call)
          dropHost(*callee, argument);
    }
  }
}

/// Inlines the whole schedule into its caller, so that the NULL host reaches every grid. Recursion is left alone.
static void inlineSchedule(llvm::Function &function, SmallPtrSetImpl<llvm::Function *> &seen) {
  if (function.isDeclaration() || !seen.insert(&function).second)
    return;
  function.removeFnAttr(Attribute::NoInline);
  function.removeFnAttr(Attribute::OptimizeNone);
  function.addFnAttr(Attribute::AlwaysInline);
  for (Instruction &instruction : instructions(function)) {
    auto *call = dyn_cast<CallBase>(&instruction);
    llvm::Function *callee = call ? call->getCalledFunction() : nullptr;
    if (callee && !callee->isIntrinsic() && !callee->hasFnAttribute(kernelAttribute))
      inlineSchedule(*callee, seen);
  }
}

std::vector<std::string> addRunFunctions(Module &llvmModule, const SharedModule &module, WeightsPlacement weights) {
  bool takesWeights = weights == WeightsPlacement::Absent && !module.weights.empty();
  std::vector<std::string> exported, prefixes = functionPrefixes(module);
  for (auto [ordinal, function] : enumerate(module.functions)) {
    const std::string &prefix = prefixes[ordinal];
    RunFunction writer(llvmModule, function, ordinal, takesWeights);
    exported.push_back(prefix + "_run");
    writer.buildRun(exported.back());
    if (needsMeasure(function)) {
      exported.push_back(prefix + "_measure");
      writer.buildMeasure(exported.back());
    }
  }
  SmallPtrSet<llvm::Function *, 8> seen;
  if (llvm::Function *invoke = llvmModule.getFunction("vmpk_module_invoke")) {
    dropHost(*invoke, *invoke->arg_begin());
    inlineSchedule(*invoke, seen);
  }
  return exported;
}

Error checkNoIndirectCalls(const Module &llvmModule) {
  for (const llvm::Function &function : llvmModule)
    for (const Instruction &instruction : instructions(function))
      if (const auto *call = dyn_cast<CallBase>(&instruction); call && call->isIndirectCall())
        return createStringError("runtimeless: '" + function.getName() + "' still calls through a pointer");
  return Error::success();
}

} // namespace vmpack::targets
