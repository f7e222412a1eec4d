//===- Epilogues.cpp - what a kernel does to its result for free ----------------------------------------===//
//
// A generic on a kernel's only use is taken op by op from its front:
//   x * scale[c]    constant scale: the packed weights' columns and the bias are scaled
//   x + bias[c]     the kernel's bias
//   max(x, low), min(x, high) by constants: the kernel's clamp; after it nothing else fits
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/lowering/Epilogues.h"
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/Constants.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/Matchers.h"

#include <cmath>

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {
namespace {

/// The weights of a kernel op with column j multiplied by scale[j]; null when they are not constant.
Value scaledWeights(OpBuilder &builder, Location loc, Value weights, ArrayRef<float> scale, bool panels) {
  auto elements = constantElements<float>(weights);
  if (!elements)
    return Value();
  ArrayRef<int64_t> shape = cast<RankedTensorType>(weights.getType()).getShape();
  int64_t columns = shape.back(), rows = shape[shape.size() - 2];
  for (size_t index = 0; index < elements->size(); ++index) {
    size_t column = panels ? index / (rows * columns) * panelWidth + index % panelWidth : index % columns;
    if (column < scale.size())
      (*elements)[index] *= scale[column];
  }
  return createFloatConstant(builder, loc, shape, *elements);
}

/// One op of a generic's payload on the kernel's result: `other` is its second operand from outside.
template <typename KernelOp> struct EpiloguePattern : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  static OpOperand *kernelOperand(linalg::GenericOp op) {
    for (OpOperand *operand : op.getDpsInputOperands())
      if (operand->get().template getDefiningOp<KernelOp>() && operand->get().hasOneUse() &&
          op.getMatchingIndexingMap(operand).isIdentity())
        return operand;
    return nullptr;
  }

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (op.getNumReductionLoops() || op.getNumDpsInits() != 1 || op.hasIndexSemantics() ||
        !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity())
      return failure();
    OpOperand *operand = kernelOperand(op);
    if (!operand)
      return failure();
    auto kernel = operand->get().template getDefiningOp<KernelOp>();
    BlockArgument x = op.getBlock()->getArgument(operand->getOperandNumber());
    if (!x.hasOneUse())
      return failure();
    Operation *first = *x.getUsers().begin();
    if (isa<linalg::YieldOp>(first)) { // nothing is left but the kernel's result
      if (operand->get().getType() != op.getResult(0).getType())
        return failure();
      rewriter.replaceOp(op, operand->get());
      return success();
    }
    if (first->getNumOperands() != 2 || first->getNumResults() != 1)
      return failure();
    Value other = first->getOperand(first->getOperand(0) == x ? 1 : 0);
    bool absorbed = isa<arith::AddFOp>(first)                          ? absorbAdd(kernel, op, other, rewriter)
                    : isa<arith::MulFOp>(first)                        ? absorbMul(kernel, op, other, rewriter)
                    : isa<arith::MaximumFOp, arith::MinimumFOp>(first) ? absorbClamp(kernel, first, other, rewriter)
                                                                       : false;
    if (!absorbed)
      return failure();
    rewriter.modifyOpInPlace(op, [&] { rewriter.replaceOp(first, x); });
    return success();
  }

  static bool isUnclamped(KernelOp kernel) {
    return std::isinf(kernel.getLow().convertToFloat()) && kernel.getLow().isNegative() &&
           std::isinf(kernel.getHigh().convertToFloat()) && !kernel.getHigh().isNegative();
  }

  /// The value of a payload operand for each channel: a 1-D tensor along the last dim, or a scalar constant spread.
  static Value perChannel(linalg::GenericOp op, Value payloadValue, PatternRewriter &rewriter) {
    int64_t channels = cast<RankedTensorType>(op.getResult(0).getType()).getShape().back();
    FloatAttr scalar;
    if (matchPattern(payloadValue, m_Constant(&scalar)) && !ShapedType::isDynamic(channels))
      return createFloatConstant(rewriter, op.getLoc(), {channels},
                                 std::vector<float>(channels, scalar.getValue().convertToFloat()));
    auto argument = dyn_cast<BlockArgument>(payloadValue);
    if (!argument || argument.getOwner() != op.getBlock())
      return Value();
    OpOperand &operand = op->getOpOperand(argument.getArgNumber());
    auto type = dyn_cast<RankedTensorType>(operand.get().getType());
    AffineMap map = op.getMatchingIndexingMap(&operand);
    if (op.isDpsInit(&operand) || !type || type.getRank() != 1 || !type.getElementType().isF32() ||
        map.getResult(0) != rewriter.getAffineDimExpr(op.getNumLoops() - 1))
      return Value();
    return operand.get();
  }

  static void setOperands(KernelOp kernel, Value weights, Value bias, PatternRewriter &rewriter) {
    SmallVector<Value> operands{kernel->getOperand(0), weights};
    if (bias)
      operands.push_back(bias);
    operands.push_back(kernel.getOut());
    rewriter.modifyOpInPlace(kernel, [&] { kernel->setOperands(operands); });
  }

  /// True if `value` is computed before `kernel`, so that the kernel may use it.
  static bool isAvailable(KernelOp kernel, Value value) {
    Operation *definition = value.getDefiningOp();
    return !definition ||
           (definition->getBlock() == kernel->getBlock() && definition->isBeforeInBlock(kernel.getOperation()));
  }

  static bool absorbAdd(KernelOp kernel, linalg::GenericOp op, Value other, PatternRewriter &rewriter) {
    // Whatever may fail is asked before anything is made: a pattern that fails must not have changed the IR.
    if (!isUnclamped(kernel) || (kernel.getBias() && !constantOf(kernel.getBias())))
      return false;
    rewriter.setInsertionPoint(kernel);
    Value bias = perChannel(op, other, rewriter);
    if (!bias)
      return false;
    if (kernel.getBias()) {
      auto present = constantElements<float>(kernel.getBias()), added = constantElements<float>(bias);
      if (!present || !added)
        return false;
      for (auto [mine, more] : llvm::zip_equal(*present, *added))
        mine += more;
      bias = createFloatConstant(rewriter, op.getLoc(), {int64_t(present->size())}, *present);
    } else if (auto elements = constantElements<float>(bias)) {
      bias = createFloatConstant(rewriter, op.getLoc(), {int64_t(elements->size())}, *elements);
    } else if (!isAvailable(kernel, bias)) {
      return false;
    }
    setOperands(kernel, kernel->getOperand(1), bias, rewriter);
    return true;
  }

  static bool absorbMul(KernelOp kernel, linalg::GenericOp op, Value other, PatternRewriter &rewriter) {
    if (!isUnclamped(kernel) || !constantOf(kernel->getOperand(1)) ||
        (kernel.getBias() && !constantOf(kernel.getBias())))
      return false;
    rewriter.setInsertionPoint(kernel);
    Value channels = perChannel(op, other, rewriter);
    auto scale = channels ? constantElements<float>(channels) : std::nullopt;
    auto bias = kernel.getBias() ? constantElements<float>(kernel.getBias()) : std::vector<float>();
    if (!scale || !bias)
      return false;
    Value weights =
        scaledWeights(rewriter, op.getLoc(), kernel->getOperand(1), *scale, !std::is_same_v<KernelOp, DepthwiseOp>);
    if (!weights)
      return false;
    for (size_t index = 0; index < bias->size(); ++index)
      (*bias)[index] *= (*scale)[index];
    Value scaledBias =
        bias->empty() ? Value() : createFloatConstant(rewriter, op.getLoc(), {int64_t(bias->size())}, *bias);
    setOperands(kernel, weights, scaledBias, rewriter);
    return true;
  }

  static bool absorbClamp(KernelOp kernel, Operation *clamp, Value other, PatternRewriter &rewriter) {
    FloatAttr bound;
    if (!matchPattern(other, m_Constant(&bound)) || !bound.getType().isF32())
      return false;
    float value = bound.getValue().convertToFloat();
    float low = kernel.getLow().convertToFloat(), high = kernel.getHigh().convertToFloat();
    // The kernel computes min(max(x, low), high): a later bound must keep that order's meaning.
    if (std::isnan(value) || (isa<arith::MaximumFOp>(clamp) ? value > high : value < low))
      return false;
    rewriter.modifyOpInPlace(kernel, [&] {
      if (isa<arith::MaximumFOp>(clamp))
        kernel.setLowAttr(rewriter.getF32FloatAttr(std::max(low, value)));
      else
        kernel.setHighAttr(rewriter.getF32FloatAttr(std::min(high, value)));
    });
    return true;
  }
};

} // namespace

void addEpiloguePatterns(RewritePatternSet &patterns) {
  patterns.add<EpiloguePattern<GemmOp>, EpiloguePattern<ConvOp>, EpiloguePattern<DepthwiseOp>>(patterns.getContext());
}

} // namespace vmpack::lowering
