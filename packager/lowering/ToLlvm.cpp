//===- ToLlvm.cpp - schedules and dispatches become the LLVM dialect ------------------------------------===//
//
// No struct of the ABI is known here: generated code calls the accessors of vmpk/abi.h, which the translation links.
//
//   func @schedule.0(arena, weights, x, y, n)   →  llvm.func @schedule.0(%call: ptr) -> i32
//   func @conv_3(bindings, sizes, x, y, z)      →  llvm.func @conv_3(ptr noalias…, i64…) + @dispatch.3(args, x, y, z)
//   func @measure.0(n) -> (arena, dims…)        →  llvm.func @measure.0 + its row in @vmpk_module_measure
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/dialect/Metadata.h"
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/EntryPoints.h"
#include "packager/lowering/Passes.h"

#include "mlir/Conversion/ArithToLLVM/ArithToLLVM.h"
#include "mlir/Conversion/ControlFlowToLLVM/ControlFlowToLLVM.h"
#include "mlir/Conversion/FuncToLLVM/ConvertFuncToLLVM.h"
#include "mlir/Conversion/LLVMCommon/ConversionTarget.h"
#include "mlir/Conversion/LLVMCommon/MemRefBuilder.h"
#include "mlir/Conversion/LLVMCommon/Pattern.h"
#include "mlir/Conversion/LLVMCommon/TypeConverter.h"
#include "mlir/Conversion/MathToLLVM/MathToLLVM.h"
#include "mlir/Conversion/MemRefToLLVM/MemRefToLLVM.h"
#include "mlir/Dialect/Arith/Transforms/Passes.h"
#include "mlir/Dialect/ControlFlow/IR/ControlFlow.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Transforms/DialectConversion.h"

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {
namespace {

//===-- Math --------------------------------------------------------------------------------------------===//

/// Calls a scalar function of the kernel library: vmpk_<name>_f32 or _f64; narrower floats go through f32.
template <typename MathOp> struct MathCallPattern : OpConversionPattern<MathOp> {
  MathCallPattern(const TypeConverter &converter, MLIRContext *context, StringRef name)
      : OpConversionPattern<MathOp>(converter, context, /*benefit=*/10), name(name) {}

  LogicalResult matchAndRewrite(MathOp op, typename MathOp::Adaptor adaptor,
                                ConversionPatternRewriter &rewriter) const override {
    Type type = op->getResult(0).getType();
    if (!isa<FloatType>(type))
      return failure();
    Type computed = type.isF64() ? type : rewriter.getF32Type();
    SmallVector<Value> operands;
    for (Value operand : adaptor.getOperands())
      operands.push_back(operand.getType() == computed
                             ? operand
                             : Value(LLVM::FPExtOp::create(rewriter, op.getLoc(), computed, operand)));
    std::string callee = ("vmpk_" + name + (type.isF64() ? "_f64" : "_f32")).str();
    SmallVector<Type> inputs(operands.size(), computed);
    declare(rewriter, op, callee, LLVM::LLVMFunctionType::get(computed, inputs));
    Value result = LLVM::CallOp::create(rewriter, op.getLoc(), computed, callee, operands).getResult();
    if (computed != type)
      result = LLVM::FPTruncOp::create(rewriter, op.getLoc(), type, result);
    rewriter.replaceOp(op, result);
    return success();
  }

private:
  StringRef name;
};

void addMathCalls(RewritePatternSet &patterns, const TypeConverter &converter) {
  MLIRContext *context = patterns.getContext();
  patterns.add<MathCallPattern<math::ExpOp>>(converter, context, "exp");
  patterns.add<MathCallPattern<math::Exp2Op>>(converter, context, "exp2");
  patterns.add<MathCallPattern<math::ExpM1Op>>(converter, context, "expm1");
  patterns.add<MathCallPattern<math::LogOp>>(converter, context, "log");
  patterns.add<MathCallPattern<math::Log2Op>>(converter, context, "log2");
  patterns.add<MathCallPattern<math::Log10Op>>(converter, context, "log10");
  patterns.add<MathCallPattern<math::Log1pOp>>(converter, context, "log1p");
  patterns.add<MathCallPattern<math::SinOp>>(converter, context, "sin");
  patterns.add<MathCallPattern<math::CosOp>>(converter, context, "cos");
  patterns.add<MathCallPattern<math::TanOp>>(converter, context, "tan");
  patterns.add<MathCallPattern<math::AsinOp>>(converter, context, "asin");
  patterns.add<MathCallPattern<math::AcosOp>>(converter, context, "acos");
  patterns.add<MathCallPattern<math::AtanOp>>(converter, context, "atan");
  patterns.add<MathCallPattern<math::SinhOp>>(converter, context, "sinh");
  patterns.add<MathCallPattern<math::CoshOp>>(converter, context, "cosh");
  patterns.add<MathCallPattern<math::TanhOp>>(converter, context, "tanh");
  patterns.add<MathCallPattern<math::AsinhOp>>(converter, context, "asinh");
  patterns.add<MathCallPattern<math::AcoshOp>>(converter, context, "acosh");
  patterns.add<MathCallPattern<math::AtanhOp>>(converter, context, "atanh");
  patterns.add<MathCallPattern<math::ErfOp>>(converter, context, "erf");
  patterns.add<MathCallPattern<math::ErfcOp>>(converter, context, "erfc");
  patterns.add<MathCallPattern<math::CbrtOp>>(converter, context, "cbrt");
  patterns.add<MathCallPattern<math::RsqrtOp>>(converter, context, "rsqrt");
  patterns.add<MathCallPattern<math::PowFOp>>(converter, context, "pow");
  patterns.add<MathCallPattern<math::Atan2Op>>(converter, context, "atan2");
  patterns.add<MathCallPattern<arith::RemFOp>>(converter, context, "fmod");
}

//===-- vmpk --------------------------------------------------------------------------------------------===//

struct ViewPattern : ConvertOpToLLVMPattern<ViewOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(ViewOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    auto type = cast<MemRefType>(op.getType());
    Location loc = op.getLoc();
    SmallVector<Value> sizes, strides;
    Value bytes;
    getMemRefDescriptorSizes(loc, type, adaptor.getSizes(), rewriter, sizes, strides, bytes, /*sizeInBytes=*/false);
    rewriter.replaceOp(
        op, {createMemRefDescriptor(loc, type, adaptor.getPointer(), adaptor.getPointer(), sizes, strides, rewriter)});
    return success();
  }
};

struct NullPattern : ConvertOpToLLVMPattern<NullOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(NullOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    rewriter.replaceOpWithNewOp<LLVM::ZeroOp>(op, op.getType());
    return success();
  }
};

/// The pointer to the first element of a converted memref.
Value firstElement(OpBuilder &builder, Location loc, Value descriptor, MemRefType type,
                   const LLVMTypeConverter &converter) {
  MemRefDescriptor memref(descriptor);
  Value pointer = memref.alignedPtr(builder, loc);
  SmallVector<int64_t> strides;
  int64_t offset;
  if (succeeded(type.getStridesAndOffset(strides, offset)) && offset == 0)
    return pointer;
  return LLVM::GEPOp::create(builder, loc, pointer.getType(), converter.convertType(type.getElementType()), pointer,
                             memref.offset(builder, loc));
}

struct CallPattern : ConvertOpToLLVMPattern<CallOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(CallOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    SmallVector<Value> operands;
    for (auto [original, converted] : llvm::zip_equal(op.getInputs(), adaptor.getInputs())) {
      auto type = dyn_cast<MemRefType>(original.getType());
      operands.push_back(type ? firstElement(rewriter, op.getLoc(), converted, type, *getTypeConverter()) : converted);
    }
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()),
                                            llvm::to_vector(ValueRange(operands).getTypes()));
    declare(rewriter, op, op.getCallee(), type);
    LLVM::CallOp::create(rewriter, op.getLoc(), type, op.getCallee(), operands);
    rewriter.eraseOp(op);
    return success();
  }
};

/// Ends the schedule with `status` unless it is 0; what follows runs in a block of its own.
void returnUnlessOk(ConversionPatternRewriter &rewriter, Operation *op, Value status) {
  Location loc = op->getLoc();
  Block *block = rewriter.getInsertionBlock();
  Block *next = rewriter.splitBlock(block, Block::iterator(op));
  Block *failed = rewriter.createBlock(block->getParent(), block->getParent()->end());
  LLVM::ReturnOp::create(rewriter, loc, status);
  rewriter.setInsertionPointToEnd(block);
  Value zero = LLVM::ConstantOp::create(rewriter, loc, rewriter.getI32IntegerAttr(0));
  Value isOk = LLVM::ICmpOp::create(rewriter, loc, LLVM::ICmpPredicate::eq, status, zero);
  LLVM::CondBrOp::create(rewriter, loc, isOk, next, failed);
  rewriter.setInsertionPointToStart(next);
}

struct DispatchPattern : ConvertOpToLLVMPattern<DispatchOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(DispatchOp op, OpAdaptor adaptor, ConversionPatternRewriter &rewriter) const override {
    Location loc = op.getLoc();
    Abi abi(rewriter, op);
    Value call = callOf(op);
    Value arena = abi.call("vmpk_abi_arena", abi.pointer(), {call});
    Value place = LLVM::ConstantOp::create(rewriter, loc, op->getAttrOfType<IntegerAttr>(argumentsOffsetAttr));
    Value memory = LLVM::GEPOp::create(rewriter, loc, abi.pointer(), rewriter.getI8Type(), arena, place);
    Value count = abi.i32(op.getInputs().size());
    Value arguments = abi.call("vmpk_abi_begin_dispatch", abi.pointer(), {memory, abi.i32(op.getOrdinal()), count});
    for (auto [index, original] : llvm::enumerate(op.getInputs())) {
      Value value = adaptor.getInputs()[index], position = abi.i64(index);
      if (auto type = dyn_cast<MemRefType>(original.getType()))
        abi.call("vmpk_abi_set_binding", Type(),
                 {arguments, position, firstElement(rewriter, loc, value, type, *getTypeConverter())});
      else
        abi.call("vmpk_abi_set_constant", Type(), {arguments, position, value});
    }
    Value function = LLVM::AddressOfOp::create(rewriter, loc, abi.pointer(), dispatchName(op.getOrdinal()));
    SmallVector<Value> operands{call, function, arguments};
    for (Value extent : {adaptor.getX(), adaptor.getY(), adaptor.getZ()})
      operands.push_back(LLVM::TruncOp::create(rewriter, loc, rewriter.getI32Type(), extent));
    Value status = abi.call("vmpk_abi_dispatch", rewriter.getI32Type(), operands);
    returnUnlessOk(rewriter, op, status);
    rewriter.eraseOp(op);
    return success();
  }

  static Value callOf(Operation *op) {
    return op->getParentOfType<FunctionOpInterface>().getFunctionBody().getArgument(0);
  }
};

struct BarrierPattern : ConvertOpToLLVMPattern<BarrierOp> {
  using ConvertOpToLLVMPattern::ConvertOpToLLVMPattern;
  LogicalResult matchAndRewrite(BarrierOp op, OpAdaptor, ConversionPatternRewriter &rewriter) const override {
    Abi abi(rewriter, op);
    Value status = abi.call("vmpk_abi_barrier", rewriter.getI32Type(), {DispatchPattern::callOf(op)});
    returnUnlessOk(rewriter, op, status);
    rewriter.eraseOp(op);
    return success();
  }
};

struct ToLlvmPass : PassWrapper<ToLlvmPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ToLlvmPass)
  StringRef getArgument() const override { return "vmpk-to-llvm"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<LLVM::LLVMDialect>(); }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    makeEntryPoints(module);

    MLIRContext &context = getContext();
    LowerToLLVMOptions options(&context);
    options.overrideIndexBitwidth(64); // on every target: nothing here may fold a pointer's width
    LLVMTypeConverter converter(&context, options);
    RewritePatternSet patterns(&context);
    arith::populateCeilFloorDivExpandOpsPatterns(patterns);
    addMathCalls(patterns, converter);
    patterns.add<ViewPattern, NullPattern, CallPattern, DispatchPattern, BarrierPattern>(converter);
    arith::populateArithToLLVMConversionPatterns(converter, patterns);
    populateMathToLLVMConversionPatterns(converter, patterns);
    populateFinalizeMemRefToLLVMConversionPatterns(converter, patterns);
    cf::populateControlFlowToLLVMConversionPatterns(converter, patterns);
    populateFuncToLLVMConversionPatterns(converter, patterns);
    LLVMConversionTarget target(context);
    target.addLegalOp<ModuleOp, WeightOp>();
    if (failed(applyFullConversion(module, target, std::move(patterns))))
      return signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createToLlvmPass() { return std::make_unique<ToLlvmPass>(); }

} // namespace vmpack::lowering
