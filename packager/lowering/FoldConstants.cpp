//===- FoldConstants.cpp - subgraphs of constants become constants --------------------------------------===//
//
// Upstream folds splats and scalars; models also scale, transpose, reshape and slice large constants (resources, which
// upstream leaves alone). A broadcast that would make the model larger is kept as code.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/Constants.h"
#include "packager/lowering/Evaluate.h"
#include "packager/lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace vmpack::lowering {
namespace {

/// Row-major strides of a static shape.
SmallVector<int64_t> stridesOf(ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (int64_t dim = int64_t(shape.size()) - 2; dim >= 0; --dim)
    strides[dim] = strides[dim + 1] * shape[dim + 1];
  return strides;
}

int64_t elementBytes(Type type) { return llvm::divideCeil(type.isIndex() ? 64 : type.getIntOrFloatBitWidth(), 8); }

std::optional<std::vector<char>> bytesOf(Value value) {
  ElementsAttr elements = constantOf(value);
  if (!elements || elements.getElementType().isIndex())
    return std::nullopt;
  std::vector<char> bytes(dialect::byteSize(elements.getShapedType()));
  dialect::writeElements(elements, bytes);
  return bytes;
}

/// Gathers from `source`: result element at (i0, i1, …) is the source's at offset + sum(i * strides).
std::vector<char> gather(ArrayRef<char> source, int64_t width, ArrayRef<int64_t> shape, ArrayRef<int64_t> strides,
                         int64_t offset) {
  int64_t count = ShapedType::getNumElements(shape);
  std::vector<char> result(count * width);
  SmallVector<int64_t> index(shape.size(), 0);
  for (int64_t element = 0; element < count; ++element) {
    std::copy_n(source.data() + offset * width, width, result.data() + element * width);
    for (int64_t dim = int64_t(shape.size()) - 1; dim >= 0; --dim) {
      offset += strides[dim];
      if (++index[dim] < shape[dim])
        break;
      offset -= strides[dim] * shape[dim];
      index[dim] = 0;
    }
  }
  return result;
}

struct FoldTranspose : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::TransposeOp op, PatternRewriter &rewriter) const override {
    auto bytes = bytesOf(op.getInput());
    if (!bytes)
      return failure();
    auto type = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<int64_t> source = stridesOf(cast<RankedTensorType>(op.getInput().getType()).getShape()), strides;
    for (int64_t dim : op.getPermutation())
      strides.push_back(source[dim]);
    std::vector<char> result = gather(*bytes, elementBytes(type.getElementType()), type.getShape(), strides, 0);
    rewriter.replaceOp(op, createConstant(rewriter, op.getLoc(), type, result));
    return success();
  }
};

template <typename ReshapeOp> struct FoldReshape : OpRewritePattern<ReshapeOp> {
  using OpRewritePattern<ReshapeOp>::OpRewritePattern;
  LogicalResult matchAndRewrite(ReshapeOp op, PatternRewriter &rewriter) const override {
    auto type = cast<RankedTensorType>(op.getResult().getType());
    auto bytes = type.hasStaticShape() ? bytesOf(op.getSrc()) : std::nullopt;
    if (!bytes)
      return failure();
    rewriter.replaceOp(op, createConstant(rewriter, op.getLoc(), type, *bytes));
    return success();
  }
};

struct FoldSlice : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op, PatternRewriter &rewriter) const override {
    auto known = [](ArrayRef<int64_t> values) { return llvm::none_of(values, ShapedType::isDynamic); };
    if (!known(op.getStaticOffsets()) || !known(op.getStaticSizes()) || !known(op.getStaticStrides()))
      return failure();
    auto bytes = bytesOf(op.getSource());
    if (!bytes)
      return failure();
    SmallVector<int64_t> strides = stridesOf(op.getSourceType().getShape());
    int64_t offset = 0;
    for (auto [dim, stride] : llvm::enumerate(strides)) {
      offset += op.getStaticOffsets()[dim] * stride;
      stride *= op.getStaticStrides()[dim];
    }
    std::vector<char> result =
        gather(*bytes, elementBytes(op.getType().getElementType()), op.getStaticSizes(), strides, offset);
    rewriter.replaceOp(op, createConstant(rewriter, op.getLoc(), op.getType(), result));
    return success();
  }
};

/// An element-wise op on constants alone.
struct FoldGeneric : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (op.getNumReductionLoops() || op.getNumDpsInits() != 1 || op.getNumDpsInputs() == 0 ||
        !op.getMatchingIndexingMap(op.getDpsInitOperand(0)).isIdentity() ||
        op.payloadUsesValueFromOperand(op.getDpsInitOperand(0)))
      return failure();
    auto type = cast<RankedTensorType>(op.getResult(0).getType());
    if (!type.hasStaticShape() || type.getElementType().isIndex())
      return failure();
    std::vector<std::vector<char>> inputs;
    int64_t largest = 0;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto bytes = isa<RankedTensorType>(operand->get().getType()) ? bytesOf(operand->get()) : std::nullopt;
      if (!bytes || !op.getMatchingIndexingMap(operand).isProjectedPermutation(/*allowZeroInResults=*/true))
        return failure();
      largest = std::max<int64_t>(largest, cast<RankedTensorType>(operand->get().getType()).getNumElements());
      inputs.push_back(std::move(*bytes));
    }
    if (type.getNumElements() > std::max<int64_t>(4 * largest, 1024))
      return failure();
    auto payload = Payload::compile(*op.getBlock());
    if (!payload)
      return failure();
    std::vector<char> result = evaluate(op, type, inputs, *payload);
    rewriter.replaceOp(op, createConstant(rewriter, op.getLoc(), type, result));
    return success();
  }

  static std::vector<char> evaluate(linalg::GenericOp op, RankedTensorType type,
                                    const std::vector<std::vector<char>> &inputs, Payload &payload) {
    // Each input walks with strides along the op's loops, which are the result's dims.
    SmallVector<SmallVector<int64_t>> strides;
    SmallVector<Type> types;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto inputType = cast<RankedTensorType>(operand->get().getType());
      SmallVector<int64_t> own = stridesOf(inputType.getShape()), walked(type.getRank(), 0);
      for (auto [result, expr] : llvm::enumerate(op.getMatchingIndexingMap(operand).getResults()))
        if (auto dim = dyn_cast<AffineDimExpr>(expr))
          walked[dim.getPosition()] = own[result];
      strides.push_back(walked);
      types.push_back(inputType.getElementType());
    }
    int64_t width = elementBytes(type.getElementType());
    std::vector<char> result(type.getNumElements() * width);
    SmallVector<int64_t> index(type.getRank(), 0), offsets(inputs.size(), 0);
    SmallVector<Scalar> arguments(inputs.size() + 1), results(1);
    for (int64_t element = 0; element < type.getNumElements(); ++element) {
      for (size_t input = 0; input < inputs.size(); ++input)
        arguments[input] =
            readElement(inputs[input].data() + offsets[input] * elementBytes(types[input]), types[input]);
      payload.run(arguments, results);
      writeElement(result.data() + element * width, type.getElementType(), results[0]);
      for (int64_t dim = type.getRank() - 1; dim >= 0; --dim) {
        bool wraps = ++index[dim] == type.getDimSize(dim);
        for (size_t input = 0; input < inputs.size(); ++input)
          offsets[input] += strides[input][dim] * (wraps ? 1 - type.getDimSize(dim) : 1);
        if (!wraps)
          break;
        index[dim] = 0;
      }
    }
    return result;
  }
};

struct FoldConstantsPass : PassWrapper<FoldConstantsPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FoldConstantsPass)
  StringRef getArgument() const override { return "vmpk-fold-constants"; }
  void getDependentDialects(DialectRegistry &registry) const override { registry.insert<arith::ArithDialect>(); }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<FoldTranspose, FoldReshape<tensor::ExpandShapeOp>, FoldReshape<tensor::CollapseShapeOp>, FoldSlice,
                 FoldGeneric>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createFoldConstantsPass() { return std::make_unique<FoldConstantsPass>(); }

} // namespace vmpack::lowering
