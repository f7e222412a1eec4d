//===- Fusion.cpp - element-wise ops fuse, and work in place --------------------------------------------===//
#include "packager/lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Transforms/GreedyPatternRewriteDriver.h"

using namespace mlir;

namespace vmpack::lowering {
namespace {

/// True if fusing does not compute the producer's values more often than now.
bool fusionPays(OpOperand *fused) {
  auto producer = fused->get().getDefiningOp<linalg::GenericOp>();
  auto consumer = dyn_cast<linalg::GenericOp>(fused->getOwner());
  if (!producer || !consumer || !fused->get().hasOneUse() || producer.getNumResults() != 1)
    return false;
  AffineMap map = consumer.getMatchingIndexingMap(fused);
  return map.isPermutation();
}

struct FuseElementwisePass : PassWrapper<FuseElementwisePass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(FuseElementwisePass)
  StringRef getArgument() const override { return "vmpk-fuse-elementwise"; }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext());
    linalg::populateElementwiseOpsFusionPatterns(patterns, fusionPays);
    linalg::populateEraseUnusedOperandsAndResultsPatterns(patterns);
    linalg::GenericOp::getCanonicalizationPatterns(patterns, &getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))))
      signalPassFailure();
  }
};

/// An element-wise op whose operand dies with it writes into that operand's memory:
///   generic ins(%a, %b) outs(%empty)  →  generic ins(%b) outs(%a)
struct InPlacePattern : OpRewritePattern<linalg::GenericOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(linalg::GenericOp op, PatternRewriter &rewriter) const override {
    if (op.getNumDpsInits() != 1 || op.getNumReductionLoops() || !op.getDpsInits()[0].getDefiningOp<tensor::EmptyOp>())
      return failure();
    OpOperand *init = op.getDpsInitOperand(0);
    AffineMap map = op.getMatchingIndexingMap(init);
    auto reusable = [&](OpOperand *operand) {
      Operation *producer = operand->get().getDefiningOp();
      return producer && isa<DestinationStyleOpInterface>(producer) && operand->get().hasOneUse() &&
             operand->get().getType() == init->get().getType() && op.getMatchingIndexingMap(operand) == map;
    };
    SmallVector<OpOperand *> inputs = op.getDpsInputOperands();
    auto found = llvm::find_if(inputs, reusable);
    if (found == inputs.end() || !map.isPermutation())
      return failure();
    unsigned reused = (*found)->getOperandNumber();

    SmallVector<Value> remaining(op.getDpsInputs());
    SmallVector<AffineMap> maps = op.getIndexingMapsArray();
    Value destination = remaining[reused];
    remaining.erase(remaining.begin() + reused);
    maps.erase(maps.begin() + reused);
    auto inPlace = linalg::GenericOp::create(rewriter, op.getLoc(), op.getResultTypes(), remaining,
                                             ValueRange(destination), maps, op.getIteratorTypesArray());
    inPlace.getRegion().takeBody(op.getRegion());
    Block *body = inPlace.getBlock();
    body->getArgument(reused).replaceAllUsesWith(body->getArguments().back());
    body->eraseArgument(reused);
    rewriter.replaceOp(op, inPlace.getResults());
    return success();
  }
};

/// A part of a concatenation that others read too is made in memory of its own and copied: they would have to read it
/// from the whole's, and that conflicts with the parts that are written later. An empty tensor, in contrast, may become
/// a view of the whole.
struct OwnMemoryForSharedPart : OpRewritePattern<tensor::InsertSliceOp> {
  using OpRewritePattern::OpRewritePattern;

  LogicalResult matchAndRewrite(tensor::InsertSliceOp op, PatternRewriter &rewriter) const override {
    OpOperand *destination = &op.getSourceMutable();
    if (destination->get().hasOneUse())
      return failure();
    while (auto result = dyn_cast<OpResult>(destination->get())) {
      auto producer = dyn_cast<DestinationStyleOpInterface>(result.getOwner());
      if (!producer)
        break;
      destination = producer.getTiedOpOperand(result);
    }
    auto empty = destination->get().getDefiningOp<tensor::EmptyOp>();
    if (!empty)
      return failure();
    rewriter.setInsertionPoint(empty);
    auto memory =
        bufferization::AllocTensorOp::create(rewriter, empty.getLoc(), empty.getType(), empty.getDynamicSizes());
    rewriter.modifyOpInPlace(destination->getOwner(), [&] { destination->set(memory); });
    return success();
  }
};

struct DestinationsPass : PassWrapper<DestinationsPass, OperationPass<func::FuncOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DestinationsPass)
  StringRef getArgument() const override { return "vmpk-destinations"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<bufferization::BufferizationDialect>();
  }

  void runOnOperation() override {
    RewritePatternSet patterns(&getContext()), later(&getContext());
    patterns.add<InPlacePattern>(&getContext());
    later.add<OwnMemoryForSharedPart>(&getContext());
    if (failed(applyPatternsGreedily(getOperation(), std::move(patterns))) ||
        failed(applyPatternsGreedily(getOperation(), std::move(later))))
      signalPassFailure();
  }
};

} // namespace

std::unique_ptr<Pass> createFuseElementwisePass() { return std::make_unique<FuseElementwisePass>(); }
std::unique_ptr<Pass> createDestinationsPass() { return std::make_unique<DestinationsPass>(); }

} // namespace vmpack::lowering
