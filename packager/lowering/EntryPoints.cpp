//===- EntryPoints.cpp - the functions that the host reaches --------------------------------------------===//
#include "packager/lowering/EntryPoints.h"
#include "packager/dialect/Metadata.h"
#include "packager/dialect/Vmpk.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "vmpk/status.h"

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {

void declare(OpBuilder &builder, Operation *anchor, StringRef name, LLVM::LLVMFunctionType type) {
  auto module = anchor->getParentOfType<ModuleOp>();
  for (Operation &op : *module.getBody())
    if (auto symbol = dyn_cast<LLVM::LLVMFuncOp>(op); symbol && symbol.getSymName() == name)
      return;
  OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(module.getBody());
  LLVM::LLVMFuncOp::create(builder, module.getLoc(), name, type);
}

std::string dispatchName(uint32_t ordinal) { return "dispatch." + std::to_string(ordinal); }

Type Abi::pointer() { return LLVM::LLVMPointerType::get(builder.getContext()); }
Value Abi::i32(int64_t value) {
  return LLVM::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(int32_t(value)));
}
Value Abi::i64(int64_t value) { return LLVM::ConstantOp::create(builder, loc, builder.getI64IntegerAttr(value)); }

Value Abi::call(StringRef accessor, Type result, ValueRange operands) {
  auto type = LLVM::LLVMFunctionType::get(result ? result : LLVM::LLVMVoidType::get(builder.getContext()),
                                          llvm::to_vector(operands.getTypes()));
  declare(builder, anchor, accessor, type);
  auto call = LLVM::CallOp::create(builder, loc, type, accessor, operands);
  return result ? call.getResult() : Value();
}

namespace {

class EntryPointMaker {
public:
  explicit EntryPointMaker(ModuleOp module) : module(module), builder(module.getContext()) {}

  void run() {
    SmallVector<func::FuncOp> functions(module.getOps<func::FuncOp>());
    for (func::FuncOp function : functions) {
      if (function->hasAttr(scheduleAttr))
        convertSchedule(function);
      else if (function->hasAttr(dispatchFunctionAttr))
        wrapDispatch(function);
    }
    makeInvoke();
    makeMeasure();
  }

private:
  Type pointer() { return LLVM::LLVMPointerType::get(module.getContext()); }

  /// A new LLVM function with an entry block; the builder stands in it.
  LLVM::LLVMFuncOp makeFunction(StringRef name, ArrayRef<Type> inputs, LLVM::Linkage linkage) {
    builder.setInsertionPointToEnd(module.getBody());
    auto type = LLVM::LLVMFunctionType::get(builder.getI32Type(), inputs);
    auto function = LLVM::LLVMFuncOp::create(builder, module.getLoc(), name, type, linkage);
    builder.setInsertionPointToStart(function.addEntryBlock(builder));
    return function;
  }

  Value toIndex(Location loc, Value value) {
    return arith::IndexCastOp::create(builder, loc, builder.getIndexType(), value);
  }

  /// The schedule takes the call and finds everything through it.
  void convertSchedule(func::FuncOp function) {
    Block &body = function.getBody().front();
    Location loc = function.getLoc();
    auto entry = function->getAttrOfType<DictionaryAttr>(entryAttr);
    unsigned inputCount = cast<ArrayAttr>(entry.get("inputs")).size();
    unsigned outputCount = cast<ArrayAttr>(entry.get("outputs")).size();
    SmallVector<BlockArgument> old(body.getArguments());
    Value call = body.addArgument(pointer(), loc);
    builder.setInsertionPointToStart(&body);
    Abi abi(builder, function);

    SmallVector<Value> replacements(old.size());
    unsigned firstSymbol = 2 + inputCount + outputCount;
    Value dims = old.size() > firstSymbol ? abi.call("vmpk_abi_dims", pointer(), {call}) : Value();
    for (unsigned index = firstSymbol; index < old.size(); ++index)
      replacements[index] =
          toIndex(loc, abi.call("vmpk_abi_dim", builder.getI64Type(), {dims, abi.i64(index - firstSymbol)}));
    Value nothing = arith::ConstantIndexOp::create(builder, loc, 0);
    replacements[0] =
        ViewOp::create(builder, loc, old[0].getType(), abi.call("vmpk_abi_arena", pointer(), {call}), nothing);
    replacements[1] =
        ViewOp::create(builder, loc, old[1].getType(), abi.call("vmpk_abi_weights", pointer(), {call}), nothing);
    auto returnOp = cast<func::ReturnOp>(function.getBody().back().getTerminator());
    for (unsigned index = 0; index < inputCount + outputCount; ++index) {
      bool isInput = index < inputCount;
      Value data = abi.call(isInput ? "vmpk_abi_input" : "vmpk_abi_output", pointer(),
                            {call, abi.i64(isInput ? index : index - inputCount)});
      auto type = cast<MemRefType>(old[2 + index].getType());
      SmallVector<Value> sizes = sizesOf(function, type, 2 + index, ArrayRef(replacements).drop_front(firstSymbol));
      replacements[2 + index] = ViewOp::create(builder, loc, type, data, sizes);
    }
    for (auto [argument, replacement] : llvm::zip_equal(old, replacements))
      argument.replaceAllUsesWith(replacement);
    body.eraseArguments(0, old.size());
    builder.setInsertionPoint(returnOp);
    Value ok = arith::ConstantOp::create(builder, loc, builder.getI32IntegerAttr(VMPK_STATUS_OK));
    func::ReturnOp::create(builder, loc, ok);
    returnOp.erase();
    function.setType(builder.getFunctionType({pointer()}, {builder.getI32Type()}));
    function.setPrivate();
  }

  /// The dynamic sizes of an input: its symbols; of an output: computed as measure.N does.
  SmallVector<Value> sizesOf(func::FuncOp function, MemRefType type, unsigned argument, ArrayRef<Value> symbols) {
    SmallVector<Value> sizes;
    if (type.hasStaticShape())
      return sizes;
    auto entry = function->getAttrOfType<DictionaryAttr>(entryAttr);
    auto inputs = cast<ArrayAttr>(entry.get("inputs")), outputs = cast<ArrayAttr>(entry.get("outputs"));
    unsigned index = argument - 2;
    if (index < inputs.size()) {
      for (Attribute dim : cast<ArrayAttr>(cast<DictionaryAttr>(inputs[index]).get("dims")))
        if (int64_t value = cast<IntegerAttr>(dim).getInt(); value < 0)
          sizes.push_back(symbols[-1 - value]);
      return sizes;
    }
    auto measure = module.lookupSymbol<func::FuncOp>(
        "measure." + std::to_string(function->getAttrOfType<IntegerAttr>(scheduleAttr).getInt()));
    auto measured = func::CallOp::create(builder, function.getLoc(), measure, symbols);
    unsigned position = 1;
    for (unsigned output = 0; output <= index - inputs.size(); ++output)
      for (Attribute dim : cast<ArrayAttr>(cast<DictionaryAttr>(outputs[output]).get("dims")))
        if (cast<IntegerAttr>(dim).getInt() < 0) {
          if (output == index - inputs.size())
            sizes.push_back(measured.getResult(position));
          ++position;
        }
    return sizes;
  }

  /// dispatch.N unpacks the arguments and calls the body, whose bindings alias nothing.
  void wrapDispatch(func::FuncOp function) {
    unsigned bindings = function->getAttrOfType<IntegerAttr>(bindingCountAttr).getInt();
    for (unsigned index = 0; index < bindings; ++index)
      function.setArgAttr(index, LLVM::LLVMDialect::getNoAliasAttrName(), builder.getUnitAttr());
    Location loc = function.getLoc();
    Type i32 = builder.getI32Type();
    auto ordinal = function->getAttrOfType<IntegerAttr>(dispatchFunctionAttr).getInt();
    auto wrapper = makeFunction(dispatchName(ordinal), {pointer(), i32, i32, i32}, LLVM::Linkage::Internal);
    Abi abi(builder, wrapper);
    Value arguments = wrapper.getArgument(0);
    SmallVector<Value> operands;
    unsigned count = function.getNumArguments() - 3;
    for (unsigned index = 0; index < count; ++index) {
      if (index < bindings)
        operands.push_back(abi.call("vmpk_abi_binding", pointer(), {arguments, abi.i64(index)}));
      else
        operands.push_back(
            toIndex(loc, abi.call("vmpk_abi_constant", builder.getI64Type(), {arguments, abi.i64(index)})));
    }
    for (unsigned axis = 1; axis <= 3; ++axis)
      operands.push_back(arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), wrapper.getArgument(axis)));
    func::CallOp::create(builder, loc, function, operands);
    LLVM::ReturnOp::create(builder, loc, abi.i32(VMPK_STATUS_OK));
  }

  /// Branches by ordinal: makes a block for each value below `count` and leaves the default returning a failure.
  SmallVector<Block *> switchOn(LLVM::LLVMFuncOp function, Value ordinal, unsigned count) {
    SmallVector<Block *> blocks;
    SmallVector<APInt> values;
    Block *entry = builder.getInsertionBlock();
    for (unsigned index = 0; index < count; ++index) {
      blocks.push_back(builder.createBlock(&function.getBody(), function.getBody().end()));
      values.push_back(APInt(32, index));
    }
    Block *unknown = builder.createBlock(&function.getBody(), function.getBody().end());
    Abi abi(builder, function);
    LLVM::ReturnOp::create(builder, function.getLoc(), abi.i32(VMPK_STATUS_INVALID_ARGUMENT));
    builder.setInsertionPointToEnd(entry);
    LLVM::SwitchOp::create(builder, function.getLoc(), ordinal, unknown, ValueRange(), values, blocks,
                           SmallVector<ValueRange>(count));
    return blocks;
  }

  template <typename Callback> void forEachFunction(StringRef attribute, Callback callback) {
    for (func::FuncOp function : module.getOps<func::FuncOp>())
      if (function->hasAttr(attribute))
        callback(function);
  }

  void makeInvoke() {
    SmallVector<func::FuncOp> schedules;
    forEachFunction(scheduleAttr, [&](func::FuncOp function) { schedules.push_back(function); });
    auto invoke = makeFunction("vmpk_module_invoke", {pointer()}, LLVM::Linkage::External);
    Abi abi(builder, invoke);
    Value ordinal = abi.call("vmpk_abi_function", builder.getI32Type(), {invoke.getArgument(0)});
    for (auto [block, schedule] : llvm::zip_equal(switchOn(invoke, ordinal, schedules.size()), schedules)) {
      builder.setInsertionPointToEnd(block);
      auto call = func::CallOp::create(builder, invoke.getLoc(), schedule, ValueRange(invoke.getArgument(0)));
      LLVM::ReturnOp::create(builder, invoke.getLoc(), call.getResult(0));
    }
  }

  void makeMeasure() {
    SmallVector<func::FuncOp> measures, schedules;
    forEachFunction(measureAttr, [&](func::FuncOp function) { measures.push_back(function); });
    forEachFunction(scheduleAttr, [&](func::FuncOp function) { schedules.push_back(function); });
    auto function =
        makeFunction("vmpk_module_measure", {builder.getI32Type(), pointer(), pointer()}, LLVM::Linkage::External);
    SmallVector<Block *> blocks = switchOn(function, function.getArgument(0), measures.size());
    for (auto [block, measure, schedule] : llvm::zip_equal(blocks, measures, schedules)) {
      builder.setInsertionPointToEnd(block);
      answerMeasure(function, measure, schedule);
    }
  }

  void answerMeasure(LLVM::LLVMFuncOp function, func::FuncOp measure, func::FuncOp schedule) {
    Location loc = function.getLoc();
    Abi abi(builder, function);
    auto toI64 = [&](Value value) {
      return arith::IndexCastOp::create(builder, loc, builder.getI64Type(), value).getResult();
    };
    SmallVector<Value> dims;
    for (unsigned index = 0; index < measure.getNumArguments(); ++index)
      dims.push_back(
          toIndex(loc, abi.call("vmpk_abi_dim", builder.getI64Type(), {function.getArgument(1), abi.i64(index)})));
    auto measured = func::CallOp::create(builder, loc, measure, dims);
    Value out = function.getArgument(2);
    abi.call("vmpk_abi_set_arena_size", Type(), {out, toI64(measured.getResult(0))});
    auto entry = schedule->getAttrOfType<DictionaryAttr>(entryAttr);
    unsigned position = 0, next = 1;
    for (Attribute output : cast<ArrayAttr>(entry.get("outputs")))
      for (Attribute dim : cast<ArrayAttr>(cast<DictionaryAttr>(output).get("dims"))) {
        int64_t value = cast<IntegerAttr>(dim).getInt();
        abi.call("vmpk_abi_set_output_dim", Type(),
                 {out, abi.i64(position++), value < 0 ? toI64(measured.getResult(next++)) : abi.i64(value)});
      }
    LLVM::ReturnOp::create(builder, loc, abi.i32(VMPK_STATUS_OK));
  }

  ModuleOp module;
  OpBuilder builder;
};

} // namespace

void makeEntryPoints(ModuleOp module) { EntryPointMaker(module).run(); }

} // namespace vmpack::lowering
