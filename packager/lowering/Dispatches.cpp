//===- Dispatches.cpp - groups of ops become dispatch functions -----------------------------------------===//
//
//   linalg.fill → %r ; reduce %x → %r ; linalg.generic %x, %r → %y
// becomes
//   func @softmax_3(%x: ptr, %r: ptr, %y: ptr, %n: index, %gx: index, %gy: index, %gz: index) { loops }
//   …  vmpk.dispatch @softmax_3[%gx, %gy, %gz](%x, %r, %y, %n) ; vmpk.barrier
//
// A group is a run of ops that can be split along the same leading dims of their destinations: whatever one op of the
// group reads of another's result, it reads within its own tile. Its intermediate results stay in the cache, and one
// workgroup never waits for another. What remains in the function is the schedule.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/dialect/Metadata.h"
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/KernelCalls.h"
#include "packager/lowering/Loops.h"
#include "packager/lowering/Outline.h"
#include "packager/lowering/Passes.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Linalg/Transforms/Transforms.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/PatternMatch.h"
#include "mlir/Interfaces/ViewLikeInterface.h"
#include "mlir/Transforms/RegionUtils.h"

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {

Value rootOf(Value memref) {
  while (Operation *op = memref.getDefiningOp()) {
    if (!isView(op))
      break;
    memref = op->getOperand(0);
  }
  return memref;
}

bool isView(Operation *op) {
  return isa<memref::SubViewOp, memref::CollapseShapeOp, memref::ExpandShapeOp, memref::CastOp,
             memref::ReinterpretCastOp>(op);
}

namespace {

/// An access of a compute op: which memref, and whether by whole tiles of the group.
struct Access {
  Value memref;
  bool writes;
  /// Generic ops: the map; nullptr where the op reads as it likes (kernel inputs, loads in the payload).
  AffineMap map;
};

SmallVector<Access> accessesOf(Operation *op) {
  SmallVector<Access> accesses;
  auto dps = cast<DestinationStyleOpInterface>(op);
  auto generic = dyn_cast<linalg::GenericOp>(op);
  for (OpOperand &operand : op->getOpOperands()) {
    if (!isa<MemRefType>(operand.get().getType()))
      continue;
    accesses.push_back(
        {operand.get(), dps.isDpsInit(&operand), generic ? generic.getMatchingIndexingMap(&operand) : AffineMap()});
  }
  for (Region &region : op->getRegions()) {
    llvm::SetVector<Value> captured;
    getUsedValuesDefinedAbove(region, captured);
    for (Value value : captured)
      if (isa<MemRefType>(value.getType()))
        accesses.push_back({value, false, AffineMap()});
  }
  return accesses;
}

Value destinationOf(Operation *op) { return cast<DestinationStyleOpInterface>(op).getDpsInits().front(); }

/// The static extent of a destination's dim, or dynamic.
int64_t extentOf(Operation *op, unsigned dim) { return cast<MemRefType>(destinationOf(op).getType()).getDimSize(dim); }

/// Elements that one index of the first `split` dims stands for; dynamic dims count as 64.
int64_t workPerTileRow(Operation *op, unsigned split) {
  int64_t work = 1;
  auto count = [&](int64_t extent) { work *= ShapedType::isDynamic(extent) ? 64 : std::max<int64_t>(extent, 1); };
  if (auto generic = dyn_cast<linalg::GenericOp>(op)) {
    TileSpace space = tileSpaceOf(op);
    for (auto [dim, extent] : llvm::enumerate(generic.getStaticLoopRanges()))
      if (!llvm::is_contained(ArrayRef(space.dims).take_front(split), dim))
        count(extent);
    return work;
  }
  for (int64_t extent : cast<MemRefType>(destinationOf(op).getType()).getShape().drop_front(split))
    count(extent);
  if (auto gemm = dyn_cast<GemmOp>(op))
    count(cast<MemRefType>(gemm.getA().getType()).getShape().back());
  return work;
}

/// A run of ops that becomes one dispatch.
class Group {
public:
  bool empty() const { return ops.empty(); }
  ArrayRef<Operation *> operations() const { return ops; }
  unsigned splitDims() const { return split; }

  /// Adds `op` if it can share the group's tiles. The first op always can.
  bool tryAdd(Operation *op) {
    TileSpace space = tileSpaceOf(op);
    if (ops.empty()) {
      split = naturalSplit(op, space.maximum);
      ops.push_back(op);
      return true;
    }
    if (isKernelOp(op) || space.maximum < split || !sameExtents(op) || !sharesTiles(op, space))
      return false;
    ops.push_back(op);
    return true;
  }

private:
  /// The fewest leading dims that give enough workgroups, leaving a row to vectorize where there is one.
  static unsigned naturalSplit(Operation *op, unsigned maximum) {
    unsigned limit = std::min(maximum, 3u);
    if (isKernelOp(op))
      return limit;
    auto generic = cast<linalg::GenericOp>(op);
    unsigned rank = cast<MemRefType>(destinationOf(op).getType()).getRank();
    if (generic.getNumReductionLoops() == 0 && limit == rank && rank > 1)
      --limit;
    int64_t workgroups = 1;
    for (unsigned dim = 0; dim < limit; ++dim) {
      int64_t extent = extentOf(op, dim);
      workgroups *= ShapedType::isDynamic(extent) ? 1 : extent;
      if (workgroups >= 16)
        return dim + 1;
    }
    return limit;
  }

  bool sameExtents(Operation *op) const {
    for (unsigned dim = 0; dim < split; ++dim)
      if (extentOf(ops.front(), dim) != extentOf(op, dim) || !sameDynamicExtent(op, dim))
        return false;
    return true;
  }

  /// A dynamic extent is the same when both destinations are (views of) one memref or allocated with the same size.
  bool sameDynamicExtent(Operation *op, unsigned dim) const {
    if (!ShapedType::isDynamic(extentOf(op, dim)))
      return true;
    Value mine = destinationOf(ops.front()), other = destinationOf(op);
    return mine == other || (dynamicSize(mine, dim) && dynamicSize(mine, dim) == dynamicSize(other, dim));
  }

  static Value dynamicSize(Value memref, unsigned dim) {
    auto alloc = memref.getDefiningOp<memref::AllocOp>();
    if (!alloc)
      return Value();
    unsigned position = 0;
    for (unsigned before = 0; before < dim; ++before)
      position += alloc.getType().isDynamicDim(before);
    return alloc.getDynamicSizes()[position];
  }

  /// Whatever `op` shares with the group, both access within the tile.
  bool sharesTiles(Operation *op, const TileSpace &space) const {
    for (const Access &access : accessesOf(op))
      for (Operation *earlier : ops)
        for (const Access &other : accessesOf(earlier)) {
          if (!(access.writes || other.writes) || rootOf(access.memref) != rootOf(other.memref))
            continue;
          if (access.memref != other.memref || !withinTile(access, op, space) ||
              !withinTile(other, earlier, tileSpaceOf(earlier)))
            return false;
        }
    return true;
  }

  /// True if the leading `split` indices of the access are the tile's own.
  bool withinTile(const Access &access, Operation *op, const TileSpace &space) const {
    if (isKernelOp(op))
      return access.writes;
    if (!access.map || access.map.getNumResults() < split)
      return false;
    for (unsigned dim = 0; dim < split; ++dim) {
      auto expr = dyn_cast<AffineDimExpr>(access.map.getResult(dim));
      if (!expr || expr.getPosition() != space.dims[dim])
        return false;
    }
    return true;
  }

  SmallVector<Operation *> ops;
  unsigned split = 0;
};

/// How many indices of the last split dim one workgroup takes.
int64_t chunkOf(const Group &group) {
  unsigned split = group.splitDims();
  if (split == 0)
    return 1;
  Operation *root = group.operations().front();
  if (auto winograd = dyn_cast<WinogradOp>(root))
    return winograd.getWorkgroupRows();
  int64_t extent = extentOf(root, split - 1);
  int64_t chunk = 1;
  if (isa<GemmOp>(root)) {
    chunk = 96;
  } else if (isa<ConvOp>(root)) {
    int64_t width = cast<MemRefType>(destinationOf(root).getType()).getDimSize(2);
    chunk = ShapedType::isDynamic(width) ? 4 : std::max<int64_t>(1, llvm::divideCeil(96, std::max<int64_t>(width, 1)));
  } else {
    int64_t work = 1;
    for (Operation *op : group.operations())
      work = std::max(work, workPerTileRow(op, split));
    chunk = std::max<int64_t>(1, (int64_t(1) << 15) / work);
  }
  if (ShapedType::isDynamic(extent))
    return chunk;
  // Even tiles: no workgroup has a small rest.
  extent = std::max<int64_t>(extent, 1);
  chunk = std::min(chunk, extent);
  return llvm::divideCeil(extent, llvm::divideCeil(extent, chunk));
}

struct DispatchesPass : PassWrapper<DispatchesPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(DispatchesPass)
  StringRef getArgument() const override { return "vmpk-dispatches"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<VmpkDialect, LLVM::LLVMDialect, scf::SCFDialect>();
  }

  void runOnOperation() override {
    ModuleOp module = getOperation();
    Outliner outliner(module);
    for (auto function : llvm::to_vector(module.getOps<func::FuncOp>())) {
      if (!function->hasAttr(entryAttr))
        continue;
      if (failed(normalize(function)))
        return signalPassFailure();
      SmallVector<Block *> blocks;
      function.walk([&](Block *block) {
        if (!isa<linalg::LinalgOp>(block->getParentOp()))
          blocks.push_back(block);
      });
      for (Block *block : blocks)
        if (failed(formGroups(*block, outliner)))
          return signalPassFailure();
    }
    outliner.finish();
  }

  /// Named ops and copies become generics; kernels get operands with the strides they know.
  LogicalResult normalize(func::FuncOp function) {
    IRRewriter rewriter(&getContext());
    SmallVector<Operation *> ops;
    function.walk([&](Operation *op) {
      if (isa<linalg::LinalgOp, memref::CopyOp>(op) || isKernelOp(op))
        ops.push_back(op);
    });
    for (Operation *op : ops) {
      rewriter.setInsertionPoint(op);
      if (auto copy = dyn_cast<memref::CopyOp>(op)) {
        if (copy.getSource() != copy.getTarget())
          createCopy(rewriter, op->getLoc(), copy.getSource(), copy.getTarget());
        rewriter.eraseOp(op);
      } else if (auto linalgOp = dyn_cast<linalg::LinalgOp>(op)) {
        if (!isa<linalg::GenericOp>(op) && failed(linalg::generalizeNamedOp(rewriter, linalgOp)))
          return op->emitOpError("cannot be turned into loops");
      } else {
        copyStrangeOperands(rewriter, op);
        if (auto winograd = dyn_cast<WinogradOp>(op))
          allocateScratch(rewriter, winograd);
      }
    }
    return success();
  }

  static void createCopy(OpBuilder &builder, Location loc, Value source, Value target) {
    int64_t rank = cast<MemRefType>(source.getType()).getRank();
    SmallVector<AffineMap> maps(2, builder.getMultiDimIdentityMap(rank));
    SmallVector<utils::IteratorType> iterators(rank, utils::IteratorType::parallel);
    linalg::GenericOp::create(builder, loc, source, target, maps, iterators,
                              [](OpBuilder &nested, Location nestedLoc, ValueRange values) {
                                linalg::YieldOp::create(nested, nestedLoc, values.front());
                              });
  }

  /// Kernels want rows of contiguous elements, windows contiguous images: other operands are copied.
  static void copyStrangeOperands(RewriterBase &rewriter, Operation *op) {
    unsigned last = op->getNumOperands() - 1;
    for (OpOperand &operand : op->getOpOperands()) {
      auto type = dyn_cast<MemRefType>(operand.get().getType());
      if (!type || isa<PackOp>(op))
        continue;
      SmallVector<int64_t> strides;
      int64_t offset;
      bool fits = succeeded(type.getStridesAndOffset(strides, offset)) && (strides.empty() || strides.back() == 1);
      if (fits && isa<ConvOp, WinogradOp, DepthwiseOp>(op) && type.getRank() == 4)
        fits = type.getLayout().isIdentity() || windowFits(op, type, strides);
      if (fits)
        continue;
      SmallVector<Value> sizes;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (type.isDynamicDim(dim))
          sizes.push_back(memref::DimOp::create(rewriter, op->getLoc(), operand.get(), dim));
      Value dense = memref::AllocOp::create(rewriter, op->getLoc(),
                                            MemRefType::get(type.getShape(), type.getElementType()), sizes);
      OpBuilder::InsertionGuard guard(rewriter);
      if (operand.getOperandNumber() == last) {
        rewriter.setInsertionPointAfter(op);
        createCopy(rewriter, op->getLoc(), dense, operand.get());
      } else {
        createCopy(rewriter, op->getLoc(), operand.get(), dense);
      }
      operand.set(dense);
    }
  }

  /// Each workgroup has its own: they may run at the same time.
  static void allocateScratch(OpBuilder &builder, WinogradOp op) {
    auto out = cast<MemRefType>(op.getOut().getType()), weights = cast<MemRefType>(op.getWeights().getType());
    int64_t channels = weights.getDimSize(2) + out.getDimSize(3);
    SmallVector<int64_t> shape{out.getDimSize(0), int64_t(llvm::divideCeil(out.getDimSize(1), op.getWorkgroupRows())),
                               weights.getDimSize(0) * (op.getBlock() * channels + 32)};
    SmallVector<Value> images;
    if (out.isDynamicDim(0))
      images.push_back(memref::DimOp::create(builder, op.getLoc(), op.getOut(), 0));
    op.getScratchMutable().assign(
        memref::AllocOp::create(builder, op.getLoc(), MemRefType::get(shape, builder.getF32Type()), images));
  }

  static bool windowFits(Operation *op, MemRefType type, ArrayRef<int64_t> strides) {
    if (llvm::any_of(ArrayRef(strides).drop_front(), ShapedType::isDynamic) || type.isDynamicDim(2))
      return false;
    return strides[1] == type.getDimSize(2) * strides[2] && (!isa<DepthwiseOp>(op) || strides[2] == type.getDimSize(3));
  }

  LogicalResult formGroups(Block &block, Outliner &outliner) {
    Group group;
    auto flush = [&]() -> LogicalResult {
      if (group.empty())
        return success();
      LogicalResult result = outliner.outline(group.operations(), group.splitDims(), chunkOf(group));
      group = Group();
      return result;
    };
    for (Operation &op : llvm::make_early_inc_range(block)) {
      if (isComputeOp(&op)) {
        if (!group.tryAdd(&op)) {
          if (failed(flush()))
            return failure();
          group.tryAdd(&op);
        }
        continue;
      }
      bool transparent = isMemoryEffectFree(&op) || isa<memref::AllocOp>(op);
      if (!transparent && failed(flush()))
        return failure();
    }
    return flush();
  }
};

} // namespace

std::unique_ptr<Pass> createDispatchesPass() { return std::make_unique<DispatchesPass>(); }

} // namespace vmpack::lowering
