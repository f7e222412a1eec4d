//===- Kernels.cpp - convolutions and matmuls become kernel ops -----------------------------------------===//
//
//   %p = tensor.pad %x …; %c = linalg.conv_2d_nhwc_hwcf ins(%p, %w) outs(zeros); %y = generic max(%c + %bias, 0)
// becomes
//   %y = vmpk.conv %x, %packed, %bias, %empty {pads, strides, …, low = 0, high = inf}
//
// Constant weights are packed here, once, for all targets; other right-hand sides by a vmpk.pack at run time.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/Constants.h"
#include "packager/lowering/Epilogues.h"
#include "packager/lowering/Layout.h"
#include "packager/lowering/Passes.h"
#include "packager/lowering/Winograd.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Utils/IndexingUtils.h"
#include "mlir/IR/Matchers.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

#include <limits>

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {
namespace {

RankedTensorType tensorType(Value value) { return cast<RankedTensorType>(value.getType()); }

bool allF32(Operation *op) {
  return llvm::all_of(op->getOperandTypes(), [](Type type) {
    auto tensor = dyn_cast<RankedTensorType>(type);
    return tensor && tensor.getElementType().isF32();
  });
}

bool isZero(Value value) { return matchPattern(value, m_AnyZeroFloat()); }

/// True for a fill of zeros or a constant of zeros.
bool isZeroTensor(Value value) {
  if (auto fill = value.getDefiningOp<linalg::FillOp>())
    return isZero(fill.getInputs()[0]);
  return isZero(value);
}

/// The panels of a constant k x n matrix, element (i, j) at i * rowStride + j * columnStride.
Value packConstant(OpBuilder &builder, Location loc, ArrayRef<float> matrix, int64_t k, int64_t n, int64_t rowStride,
                   int64_t columnStride) {
  int64_t panels = llvm::divideCeil(n, panelWidth);
  std::vector<float> packed(panels * k * panelWidth);
  for (int64_t column = 0; column < n; ++column)
    for (int64_t row = 0; row < k; ++row)
      packed[(column / panelWidth * k + row) * panelWidth + column % panelWidth] =
          matrix[row * rowStride + column * columnStride];
  return createFloatConstant(builder, loc, {panels, k, panelWidth}, packed);
}

/// Packs a matrix (rank 2) or a batch of them (rank 3) at run time.
Value packAtRunTime(OpBuilder &builder, Location loc, Value matrix, bool transposed) {
  SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(builder, loc, matrix);
  OpFoldResult k = sizes[sizes.size() - (transposed ? 1 : 2)], n = sizes[sizes.size() - (transposed ? 2 : 1)];
  sizes.pop_back_n(2);
  if (auto fixed = getConstantIntValue(n)) {
    sizes.push_back(builder.getIndexAttr(llvm::divideCeil(*fixed, panelWidth)));
  } else {
    Value width = arith::ConstantIndexOp::create(builder, loc, panelWidth);
    sizes.push_back(arith::CeilDivSIOp::create(builder, loc, cast<Value>(n), width).getResult());
  }
  sizes.push_back(k);
  sizes.push_back(builder.getIndexAttr(panelWidth));
  Value empty = tensor::EmptyOp::create(builder, loc, sizes, builder.getF32Type());
  return PackOp::create(builder, loc, SmallVector<Type>{empty.getType()}, matrix, empty, transposed).getResult(0);
}

FloatAttr infinity(Builder &builder, bool negative) {
  float value = std::numeric_limits<float>::infinity();
  return builder.getF32FloatAttr(negative ? -value : value);
}

/// `result` plus what the destination held before, unless that was zero.
Value addInit(PatternRewriter &rewriter, Location loc, Value result, Value init) {
  if (isZeroTensor(init))
    return result;
  int64_t rank = tensorType(result).getRank();
  Value empty = tensor::EmptyOp::create(rewriter, loc, tensor::getMixedSizes(rewriter, loc, init),
                                        tensorType(init).getElementType());
  SmallVector<AffineMap> maps(3, rewriter.getMultiDimIdentityMap(rank));
  SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
  return linalg::GenericOp::create(rewriter, loc, TypeRange(empty.getType()), ValueRange{result, init},
                                   ValueRange(empty), maps, iterators,
                                   [](OpBuilder &builder, Location nested, ValueRange values) {
                                     Value sum = arith::AddFOp::create(builder, nested, values[0], values[1]);
                                     linalg::YieldOp::create(builder, nested, sum);
                                   })
      .getResult(0);
}

Value emptyLike(OpBuilder &builder, Location loc, Value value) {
  return tensor::EmptyOp::create(builder, loc, tensor::getMixedSizes(builder, loc, value),
                                 tensorType(value).getElementType());
}

/// What a window op reads: the unpadded image where the padding is by zeros, and how much of it.
struct PaddedImage {
  Value image;
  SmallVector<int64_t> pads; ///< top, left
};

PaddedImage unpad(OpBuilder &builder, Value x) {
  PaddedImage plain{x, {0, 0}};
  // The layout may have moved the pad before the transpose to NHWC.
  auto transpose = x.getDefiningOp<linalg::TransposeOp>();
  auto pad = (transpose ? transpose.getInput() : x).getDefiningOp<tensor::PadOp>();
  if (!pad || !pad.getConstantPaddingValue() || !isZero(pad.getConstantPaddingValue()))
    return plain;
  SmallVector<int64_t> low(pad.getStaticLow()), high(pad.getStaticHigh());
  if (transpose) {
    applyPermutationToVector(low, transpose.getPermutation());
    applyPermutationToVector(high, transpose.getPermutation());
  }
  for (ArrayRef<int64_t> amounts : {ArrayRef(low), ArrayRef(high)})
    if (amounts[0] != 0 || amounts[3] != 0)
      return plain;
  if (ShapedType::isDynamic(low[1]) || ShapedType::isDynamic(low[2]) || low[1] < 0 || low[2] < 0 || high[1] < 0 ||
      high[2] < 0)
    return plain;
  Value image = pad.getSource();
  if (transpose)
    image = createTranspose(builder, pad.getLoc(), image, transpose.getPermutation());
  return {image, {low[1], low[2]}};
}

/// The attribute of a kernel op for a pair of a linalg op's.
DenseI64ArrayAttr pairOf(Builder &builder, DenseIntElementsAttr attribute) {
  return builder.getDenseI64ArrayAttr(llvm::to_vector(attribute.getValues<int64_t>()));
}

/// linalg convolutions on NHWC with filters HWCF, or FHWC as tosa has them.
template <typename LinalgConv, bool filtersFirst> struct ConvPattern : OpRewritePattern<LinalgConv> {
  using OpRewritePattern<LinalgConv>::OpRewritePattern;

  LogicalResult matchAndRewrite(LinalgConv op, PatternRewriter &rewriter) const override {
    if (!allF32(op) || !tensorType(op.getInputs()[1]).hasStaticShape())
      return failure();
    Location loc = op.getLoc();
    Value filter = op.getInputs()[1], init = op.getOutputs()[0];
    ArrayRef<int64_t> shape = tensorType(filter).getShape();
    ArrayRef<int64_t> window = filtersFirst ? shape.drop_front() : shape.drop_back();
    int64_t filters = filtersFirst ? shape.front() : shape.back();
    int64_t rows = window[0] * window[1] * window[2];
    Value packed;
    if (auto elements = constantElements<float>(filter)) {
      packed =
          packConstant(rewriter, loc, *elements, rows, filters, filtersFirst ? 1 : filters, filtersFirst ? rows : 1);
    } else {
      SmallVector<ReassociationIndices> groups{{0, 1, 2}, {3}};
      if (filtersFirst)
        groups = {{0}, {1, 2, 3}};
      Value matrix = tensor::CollapseShapeOp::create(rewriter, loc, filter, groups);
      packed = packAtRunTime(rewriter, loc, matrix, filtersFirst);
    }
    PaddedImage padded = unpad(rewriter, op.getInputs()[0]);
    Value result =
        ConvOp::create(rewriter, loc, SmallVector<Type>{init.getType()}, padded.image, packed, Value(),
                       emptyLike(rewriter, loc, init), rewriter.getDenseI64ArrayAttr(window.take_front(2)),
                       pairOf(rewriter, op.getStrides()), pairOf(rewriter, op.getDilations()),
                       rewriter.getDenseI64ArrayAttr(padded.pads), infinity(rewriter, true), infinity(rewriter, false))
            .getResult(0);
    rewriter.replaceOp(op, addInit(rewriter, loc, result, init));
    return success();
  }
};

struct DepthwisePattern : OpRewritePattern<linalg::DepthwiseConv2DNhwcHwcOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::DepthwiseConv2DNhwcHwcOp op, PatternRewriter &rewriter) const override {
    Value filter = op.getInputs()[1], init = op.getOutputs()[0];
    if (!allF32(op) || !tensorType(filter).hasStaticShape())
      return failure();
    Location loc = op.getLoc();
    ArrayRef<int64_t> shape = tensorType(filter).getShape();
    auto flat = RankedTensorType::get({shape[0] * shape[1], shape[2]}, rewriter.getF32Type());
    SmallVector<ReassociationIndices> groups{{0, 1}, {2}};
    Value weights;
    if (auto elements = constantElements<float>(filter))
      weights = createFloatConstant(rewriter, loc, flat.getShape(), *elements);
    else
      weights = tensor::CollapseShapeOp::create(rewriter, loc, flat, filter, groups);
    PaddedImage padded = unpad(rewriter, op.getInputs()[0]);
    Value result = DepthwiseOp::create(
                       rewriter, loc, SmallVector<Type>{init.getType()}, padded.image, weights, Value(),
                       emptyLike(rewriter, loc, init), rewriter.getDenseI64ArrayAttr(shape.take_front(2)),
                       pairOf(rewriter, op.getStrides()), pairOf(rewriter, op.getDilations()),
                       rewriter.getDenseI64ArrayAttr(padded.pads), infinity(rewriter, true), infinity(rewriter, false))
                       .getResult(0);
    rewriter.replaceOp(op, addInit(rewriter, loc, result, init));
    return success();
  }
};

/// tosa's depthwise with a channel multiplier of 1.
struct DepthwiseMultiplierPattern : OpRewritePattern<linalg::DepthwiseConv2DNhwcHwcmOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::DepthwiseConv2DNhwcHwcmOp op, PatternRewriter &rewriter) const override {
    Value filter = op.getInputs()[1], init = op.getOutputs()[0];
    RankedTensorType type = tensorType(filter);
    if (!allF32(op) || !type.hasStaticShape() || type.getDimSize(3) != 1)
      return failure();
    Location loc = op.getLoc();
    auto flatFilter = RankedTensorType::get(type.getShape().drop_back(), type.getElementType());
    SmallVector<ReassociationIndices> filterGroups{{0}, {1}, {2, 3}}, groups{{0}, {1}, {2}, {3, 4}};
    Value flat = tensor::CollapseShapeOp::create(rewriter, loc, flatFilter, filter, filterGroups);
    if (auto elements = constantElements<float>(filter))
      flat = createFloatConstant(rewriter, loc, flatFilter.getShape(), *elements);
    Value flatInit = tensor::CollapseShapeOp::create(rewriter, loc, init, groups);
    Value zero = arith::ConstantOp::create(rewriter, loc, rewriter.getF32FloatAttr(0));
    Value zeros = linalg::FillOp::create(rewriter, loc, zero, emptyLike(rewriter, loc, flatInit)).getResult(0);
    auto conv =
        linalg::DepthwiseConv2DNhwcHwcOp::create(rewriter, loc, flatInit.getType(), ValueRange{op.getInputs()[0], flat},
                                                 zeros, op.getStrides(), op.getDilations());
    SmallVector<OpFoldResult> sizes = tensor::getMixedSizes(rewriter, loc, init);
    Value expanded = tensor::ExpandShapeOp::create(rewriter, loc, init.getType(), conv.getResult(0), groups, sizes);
    rewriter.replaceOp(op, addInit(rewriter, loc, expanded, init));
    return success();
  }
};

template <typename MatmulOp> struct MatmulPattern : OpRewritePattern<MatmulOp> {
  using OpRewritePattern<MatmulOp>::OpRewritePattern;

  LogicalResult matchAndRewrite(MatmulOp op, PatternRewriter &rewriter) const override {
    if (!allF32(op) || op.hasUserDefinedMaps())
      return failure();
    Location loc = op.getLoc();
    Value a = op.getInputs()[0], b = op.getInputs()[1], init = op.getOutputs()[0];
    Value panels;
    if (auto elements = constantElements<float>(b); elements && tensorType(b).getRank() == 2) {
      ArrayRef<int64_t> shape = tensorType(b).getShape();
      panels = packConstant(rewriter, loc, *elements, shape[0], shape[1], shape[1], 1);
    } else {
      panels = packRightHandSide(rewriter, loc, b);
    }
    Value result = GemmOp::create(rewriter, loc, SmallVector<Type>{init.getType()}, a, panels, Value(),
                                  emptyLike(rewriter, loc, init), infinity(rewriter, true), infinity(rewriter, false))
                       .getResult(0);
    rewriter.replaceOp(op, addInit(rewriter, loc, result, init));
    return success();
  }

  /// Packs straight from the source of a transpose of the last two dims.
  static Value packRightHandSide(OpBuilder &builder, Location loc, Value b) {
    auto transpose = b.getDefiningOp<linalg::TransposeOp>();
    if (!transpose)
      return packAtRunTime(builder, loc, b, /*transposed=*/false);
    SmallVector<int64_t> swapped = llvm::to_vector(llvm::seq<int64_t>(0, tensorType(b).getRank()));
    std::swap(swapped[swapped.size() - 1], swapped[swapped.size() - 2]);
    if (transpose.getPermutation() != ArrayRef(swapped))
      return packAtRunTime(builder, loc, b, /*transposed=*/false);
    return packAtRunTime(builder, loc, transpose.getInput(), /*transposed=*/true);
  }
};

struct KernelsPass : PassWrapper<KernelsPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(KernelsPass)
  StringRef getArgument() const override { return "vmpk-kernels"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<VmpkDialect, arith::ArithDialect, tensor::TensorDialect, linalg::LinalgDialect>();
  }

  explicit KernelsPass(bool winograd) : winograd(winograd) {}

  void runOnOperation() override {
    MLIRContext *context = &getContext();
    RewritePatternSet patterns(context);
    patterns.add<ConvPattern<linalg::Conv2DNhwcHwcfOp, false>, ConvPattern<linalg::Conv2DNhwcFhwcOp, true>,
                 DepthwisePattern, DepthwiseMultiplierPattern, MatmulPattern<linalg::MatmulOp>,
                 MatmulPattern<linalg::BatchMatmulOp>>(context);
    addEpiloguePatterns(patterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      return signalPassFailure();
    if (!winograd)
      return;
    RewritePatternSet winogradPatterns(context); // on whole convolutions, with their epilogues
    addWinogradPatterns(winogradPatterns);
    if (failed(applyPatternsGreedily(getOperation(), std::move(winogradPatterns))))
      signalPassFailure();
  }

private:
  bool winograd;
};

} // namespace

std::unique_ptr<Pass> createKernelsPass(bool winograd) { return std::make_unique<KernelsPass>(winograd); }

} // namespace vmpack::lowering
