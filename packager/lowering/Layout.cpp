//===- Layout.cpp - transposes cancel, or sink towards the outputs --------------------------------------===//
//
//   transpose → conv nhwc → transpose → relu → transpose → conv nhwc → transpose
// becomes
//   transpose → conv nhwc → relu → conv nhwc → transpose
//
// An op whose operands are transposed alike works on the sources and its result is transposed instead; opposite
// transposes meet and cancel, so that they remain at the edges only.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/lowering/Layout.h"
#include "packager/lowering/Passes.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tensor/Transforms/Transforms.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace vmpack::lowering {

Value createTranspose(OpBuilder &builder, Location loc, Value source, ArrayRef<int64_t> permutation) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, source);
  applyPermutationToVector(sizes, permutation);
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, cast<RankedTensorType>(source.getType()).getElementType());
  return linalg::TransposeOp::create(builder, loc, source, empty, permutation).getResult()[0];
}

namespace {

linalg::TransposeOp transposeOf(Value value) { return value.getDefiningOp<linalg::TransposeOp>(); }

/// transpose(transpose(x)): one transpose, or none.
struct ComposeTransposes : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::TransposeOp op, PatternRewriter &rewriter) const override {
    if (isIdentityPermutation(op.getPermutation())) {
      rewriter.replaceOp(op, op.getInput());
      return success();
    }
    auto inner = transposeOf(op.getInput());
    if (!inner)
      return failure();
    SmallVector<int64_t> permutation(inner.getPermutation());
    applyPermutationToVector(permutation, op.getPermutation());
    Value result = isIdentityPermutation(permutation)
                       ? inner.getInput()
                       : createTranspose(rewriter, op.getLoc(), inner.getInput(), permutation);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// A transpose that moves only dims of size 1 past others is a reshape.
struct TransposeToReshape : OpRewritePattern<linalg::TransposeOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::TransposeOp op, PatternRewriter &rewriter) const override {
    auto source = cast<RankedTensorType>(op.getInput().getType());
    auto result = cast<RankedTensorType>(op->getResult(0).getType());
    SmallVector<int64_t> moved;
    for (int64_t dim : op.getPermutation())
      if (source.getDimSize(dim) != 1)
        moved.push_back(dim);
    if (!llvm::is_sorted(moved) || moved.empty())
      return failure();
    auto sourceGroups = groupUnits(source), resultGroups = groupUnits(result);
    SmallVector<int64_t> kept;
    for (int64_t dim : moved)
      kept.push_back(source.getDimSize(dim));
    Value flat = op.getInput();
    if (int64_t(kept.size()) != source.getRank())
      flat = tensor::CollapseShapeOp::create(rewriter, op.getLoc(),
                                             RankedTensorType::get(kept, source.getElementType()), flat, sourceGroups);
    if (int64_t(kept.size()) != result.getRank()) {
      SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, op.getLoc(), op.getInput());
      applyPermutationToVector(sizes, op.getPermutation());
      flat = tensor::ExpandShapeOp::create(rewriter, op.getLoc(), result, flat, resultGroups, sizes);
    }
    rewriter.replaceOp(op, flat);
    return success();
  }

  /// Groups of dims with one that is not 1 each; leading ones join the first, the others the group before them.
  static SmallVector<ReassociationIndices> groupUnits(RankedTensorType type) {
    SmallVector<ReassociationIndices> groups;
    ReassociationIndices leading;
    for (int64_t dim = 0; dim < type.getRank(); ++dim) {
      if (type.getDimSize(dim) == 1) {
        (groups.empty() ? leading : groups.back()).push_back(dim);
        continue;
      }
      groups.emplace_back();
      groups.back().swap(leading);
      groups.back().push_back(dim);
    }
    return groups;
  }
};

/// Element-wise on transposed operands: work in the source's layout, transpose the result.
struct SinkThroughElementwise : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (op.getNumReductionLoops() || op.hasIndexSemantics())
      return failure();
    for (OpOperand &init : op.getDpsInitsMutable())
      if (!init.get().getDefiningOp<tensor::EmptyOp>() || !op.getMatchingIndexingMap(&init).isIdentity())
        return failure();
    SmallVector<int64_t> permutation = choosePermutation(op);
    if (permutation.empty())
      return failure();

    // Loop i of the new op is loop inverse[i]... of the old one, such that the transposed operands are read in order.
    SmallVector<int64_t> inverse = invertPermutationVector(permutation);
    unsigned loops = op.getNumLoops();
    SmallVector<AffineExpr> renamed(loops);
    for (unsigned loop = 0; loop < loops; ++loop)
      renamed[loop] = rewriter.getAffineDimExpr(permutation[loop]);
    SmallVector<Value> inputs, inits;
    SmallVector<AffineMap> maps;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(operand);
      Value value = operand->get();
      if (auto transpose = transposeOf(value);
          transpose && map.isIdentity() && transpose.getPermutation() == ArrayRef(permutation)) {
        value = transpose.getInput();
        maps.push_back(rewriter.getMultiDimIdentityMap(loops));
      } else {
        maps.push_back(map.replaceDimsAndSymbols(renamed, {}, loops, 0));
      }
      inputs.push_back(value);
    }
    SmallVector<Type> types;
    for (Value init : op.getDpsInits()) {
      SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, op.getLoc(), init);
      applyPermutationToVector(sizes, inverse);
      inits.push_back(tensor::EmptyOp::create(rewriter, op.getLoc(), sizes,
                                              cast<RankedTensorType>(init.getType()).getElementType()));
      types.push_back(inits.back().getType());
      maps.push_back(rewriter.getMultiDimIdentityMap(loops));
    }
    auto sunk =
        linalg::GenericOp::create(rewriter, op.getLoc(), types, inputs, inits, maps, op.getIteratorTypesArray());
    rewriter.inlineRegionBefore(op.getRegion(), sunk.getRegion(), sunk.getRegion().end());
    SmallVector<Value> results;
    for (Value result : sunk.getResults())
      results.push_back(createTranspose(rewriter, op.getLoc(), result, permutation));
    rewriter.replaceOp(op, results);
    return success();
  }

  /// The permutation that at least half of the full-sized operands share; empty when there is none.
  static SmallVector<int64_t> choosePermutation(linalg::GenericOp op) {
    SmallVector<int64_t> permutation;
    unsigned transposed = 0, other = 0;
    for (OpOperand *operand : op.getDpsInputOperands()) {
      AffineMap map = op.getMatchingIndexingMap(operand);
      if (!map.isIdentity()) {
        if (!map.isProjectedPermutation(/*allowZeroInResults=*/true))
          return {};
        continue;
      }
      auto transpose = transposeOf(operand->get());
      if (transpose && (permutation.empty() || transpose.getPermutation() == ArrayRef(permutation))) {
        permutation.assign(transpose.getPermutation().begin(), transpose.getPermutation().end());
        ++transposed;
      } else if (!operand->get().getDefiningOp<arith::ConstantOp>()) {
        ++other;
      }
    }
    return transposed >= other ? permutation : SmallVector<int64_t>();
  }
};

/// A reduction reads a transposed operand in place: only its indexing map changes. So does an element-wise op that
/// sank before its other operand's transpose came to it.
struct ReadThroughTranspose : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    for (OpOperand *operand : op.getDpsInputOperands()) {
      auto transpose = transposeOf(operand->get());
      if (!transpose)
        continue;
      AffineMap map = op.getMatchingIndexingMap(operand);
      // Dim permutation[i] of the source is result i of the transpose.
      SmallVector<AffineExpr> results(map.getNumResults());
      for (auto [index, dim] : llvm::enumerate(transpose.getPermutation()))
        results[dim] = map.getResult(index);
      AffineMap direct = AffineMap::get(map.getNumDims(), 0, results, op.getContext());
      if (!op.getNumReductionLoops() && !direct.isIdentity())
        continue;
      SmallVector<AffineMap> maps = op.getIndexingMapsArray();
      maps[operand->getOperandNumber()] = direct;
      rewriter.modifyOpInPlace(op, [&] {
        op.setIndexingMapsAttr(rewriter.getAffineMapArrayAttr(maps));
        operand->set(transpose.getInput());
      });
      return success();
    }
    return failure();
  }
};

struct SinkThroughPad : OpRewritePattern<tensor::PadOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::PadOp op, PatternRewriter &rewriter) const override {
    auto transpose = transposeOf(op.getSource());
    Value value = op.getConstantPaddingValue();
    if (!transpose || !value)
      return failure();
    SmallVector<int64_t> inverse = invertPermutationVector(transpose.getPermutation());
    SmallVector<OpFoldResult> low = op.getMixedLowPad(), high = op.getMixedHighPad();
    applyPermutationToVector(low, inverse);
    applyPermutationToVector(high, inverse);
    auto padded = tensor::PadOp::create(rewriter, op.getLoc(), Type(), transpose.getInput(), low, high, value);
    Value result = createTranspose(rewriter, op.getLoc(), padded, transpose.getPermutation());
    if (result.getType() != op.getType())
      result = tensor::CastOp::create(rewriter, op.getLoc(), op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

/// A part of a concatenation, among others: the whole is made in the layout of its parts.
struct SinkThroughInsert : OpRewritePattern<tensor::InsertSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::InsertSliceOp op, PatternRewriter &rewriter) const override {
    auto part = transposeOf(op.getSource()), whole = transposeOf(op.getDest());
    if ((!part && !whole) || op.getSourceType().getRank() != op.getType().getRank())
      return failure();
    SmallVector<int64_t> permutation((whole ? whole : part).getPermutation());
    if (!canUndo(op.getSource(), permutation) || !canUndo(op.getDest(), permutation))
      return failure();
    SmallVector<int64_t> inverse = invertPermutationVector(permutation);
    SmallVector<OpFoldResult> offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(),
                              strides = op.getMixedStrides();
    for (SmallVector<OpFoldResult> *values : {&offsets, &sizes, &strides})
      applyPermutationToVector(*values, inverse);
    Value source = undo(rewriter, op.getSource(), inverse), dest = undo(rewriter, op.getDest(), inverse);
    Value inserted = tensor::InsertSliceOp::create(rewriter, op.getLoc(), source, dest, offsets, sizes, strides);
    rewriter.replaceOp(op, createTranspose(rewriter, op.getLoc(), inserted, permutation));
    return success();
  }

  /// True if `value` can be had in the layout before `permutation` at no cost.
  static bool canUndo(Value value, ArrayRef<int64_t> permutation) {
    if (auto transpose = transposeOf(value))
      return transpose.getPermutation() == permutation;
    Operation *definition = value.getDefiningOp();
    return definition && isa<tensor::EmptyOp, linalg::FillOp, arith::ConstantOp>(definition);
  }

  static Value undo(PatternRewriter &rewriter, Value value, ArrayRef<int64_t> inverse) {
    if (auto transpose = transposeOf(value))
      return transpose.getInput();
    if (value.getDefiningOp<arith::ConstantOp>())
      return createTranspose(rewriter, value.getLoc(), value, inverse); // folds
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, value.getLoc(), value);
    applyPermutationToVector(sizes, inverse);
    Type elem = cast<RankedTensorType>(value.getType()).getElementType();
    Value empty = tensor::EmptyOp::create(rewriter, value.getLoc(), sizes, elem);
    auto fill = value.getDefiningOp<linalg::FillOp>();
    return fill ? linalg::FillOp::create(rewriter, value.getLoc(), fill.getInputs(), empty).getResult(0) : empty;
  }
};

struct SinkThroughSlice : OpRewritePattern<tensor::ExtractSliceOp> {
  using OpRewritePattern::OpRewritePattern;
  LogicalResult matchAndRewrite(tensor::ExtractSliceOp op, PatternRewriter &rewriter) const override {
    auto transpose = transposeOf(op.getSource());
    if (!transpose || op.getType().getRank() != op.getSourceType().getRank())
      return failure();
    SmallVector<int64_t> inverse = invertPermutationVector(transpose.getPermutation());
    SmallVector<OpFoldResult> offsets = op.getMixedOffsets(), sizes = op.getMixedSizes(),
                              strides = op.getMixedStrides();
    for (SmallVector<OpFoldResult> *values : {&offsets, &sizes, &strides})
      applyPermutationToVector(*values, inverse);
    Value slice = tensor::ExtractSliceOp::create(rewriter, op.getLoc(), transpose.getInput(), offsets, sizes, strides);
    Value result = createTranspose(rewriter, op.getLoc(), slice, transpose.getPermutation());
    if (result.getType() != op.getType())
      result = tensor::CastOp::create(rewriter, op.getLoc(), op.getType(), result);
    rewriter.replaceOp(op, result);
    return success();
  }
};

struct LayoutPass : PassWrapper<LayoutPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(LayoutPass)
  StringRef getArgument() const override { return "vmpk-layout"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<linalg::LinalgDialect, tensor::TensorDialect, affine::AffineDialect>();
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    patterns.add<ComposeTransposes, TransposeToReshape, SinkThroughElementwise, ReadThroughTranspose, SinkThroughPad,
                 SinkThroughInsert, SinkThroughSlice>(&getContext());
    tensor::populateDecomposeTensorConcatPatterns(patterns); // the importer makes parts too
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createLayoutPass() { return std::make_unique<LayoutPass>(); }

} // namespace vmpack::lowering
