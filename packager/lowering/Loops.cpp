//===- Loops.cpp - linalg ops of a dispatch as loops ----------------------------------------------------===//
//
// The innermost loop is the one along which most operands are contiguous, so that the last mile vectorizes it to its
// own width: across channels for a pool, along the row for a row reduction (kept in a register then). Neighbouring
// loops that walk all operands contiguously become one.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/lowering/Loops.h"
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/KernelCalls.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/IRMapping.h"

#include "llvm/ADT/SmallSet.h"

using namespace mlir;

namespace vmpack::lowering {

bool isComputeOp(Operation *op) { return isa<linalg::GenericOp>(op) || isKernelOp(op); }

TileSpace tileSpaceOf(Operation *op) {
  TileSpace space;
  if (isKernelOp(op)) {
    space.maximum = kernelTileDims(op);
    return space;
  }
  auto generic = cast<linalg::GenericOp>(op);
  SmallVector<utils::IteratorType> iterators = generic.getIteratorTypesArray();
  for (OpOperand &init : generic.getDpsInitsMutable()) {
    AffineMap map = generic.getMatchingIndexingMap(&init);
    SmallVector<unsigned> dims;
    for (AffineExpr result : map.getResults()) {
      auto dim = dyn_cast<AffineDimExpr>(result);
      if (!dim || iterators[dim.getPosition()] != utils::IteratorType::parallel ||
          llvm::is_contained(dims, dim.getPosition()))
        break;
      dims.push_back(dim.getPosition());
    }
    if (init.getOperandNumber() == generic.getNumDpsInputs()) {
      space.dims = dims;
      continue;
    }
    // Several destinations are split together as far as they agree.
    size_t common = 0;
    while (common < std::min(dims.size(), space.dims.size()) && dims[common] == space.dims[common])
      ++common;
    space.dims.truncate(common);
  }
  space.maximum = space.dims.size();
  return space;
}

namespace {

/// Emits one linalg.generic.
class LoopEmitter {
public:
  LoopEmitter(OpBuilder &builder, linalg::GenericOp op)
      : builder(builder), op(op), loc(op.getLoc()), iterators(op.getIteratorTypesArray()), values(op->getOperands()),
        maps(op.getIndexingMapsArray()) {}

  LogicalResult emit(ArrayRef<TileRange> tile) {
    Value zero = arith::ConstantIndexOp::create(builder, loc, 0);
    SmallVector<Range> ranges = cast<linalg::LinalgOp>(op.getOperation()).createLoopRanges(builder, loc);
    for (Range &range : ranges) {
      begins.push_back(zero);
      ends.push_back(getValueOrCreateConstantIndexOp(builder, loc, range.size));
      extents.push_back(getConstantIntValue(range.size).value_or(ShapedType::kDynamic));
    }
    TileSpace space = tileSpaceOf(op);
    SmallVector<unsigned> order;
    for (auto [index, range] : llvm::enumerate(tile)) {
      begins[space.dims[index]] = range.begin;
      ends[space.dims[index]] = range.end;
      order.push_back(space.dims[index]);
    }
    if (!op.hasIndexSemantics())
      mergeLoops(order);
    orderLoops(order);
    ivs.resize(ranges.size());
    step = arith::ConstantIndexOp::create(builder, loc, 1);
    emitLoop(order, 0);
    return success();
  }

private:
  bool isReduction(unsigned dim) { return iterators[dim] == utils::IteratorType::reduction; }

  /// Where `map` has the dims `first` and `first` + 1 side by side as results; none when it uses them in another way.
  static std::optional<unsigned> adjacentResults(AffineMap map, unsigned first) {
    for (unsigned i = 0; i + 1 < map.getNumResults(); ++i)
      if (map.getResult(i) == getAffineDimExpr(first, map.getContext()) &&
          map.getResult(i + 1) == getAffineDimExpr(first + 1, map.getContext())) {
        AffineMap others = map.dropResults(ArrayRef<int64_t>{i, i + 1});
        return others.isFunctionOfDim(first) || others.isFunctionOfDim(first + 1) ? std::nullopt : std::optional(i);
      }
    return std::nullopt;
  }

  /// The groups that join dims `at` and `at` + 1 of `rank`.
  static SmallVector<ReassociationIndices> joinAt(unsigned at, unsigned rank) {
    SmallVector<ReassociationIndices> groups;
    for (unsigned dim = 0; dim < rank; ++dim)
      if (dim == at + 1)
        groups.back().push_back(dim);
      else
        groups.push_back({dim});
    return groups;
  }

  /// Every operand either walks `first` and `first` + 1 as one contiguous dim, or knows neither.
  bool canMerge(unsigned first) {
    if (iterators[first] != iterators[first + 1])
      return false;
    for (auto [value, map] : llvm::zip_equal(values, maps)) {
      auto type = dyn_cast<MemRefType>(value.getType());
      if (!type || (!map.isFunctionOfDim(first) && !map.isFunctionOfDim(first + 1)))
        continue;
      std::optional<unsigned> at = adjacentResults(map, first);
      if (!at || !memref::CollapseShapeOp::isGuaranteedCollapsible(type, joinAt(*at, type.getRank())))
        return false;
    }
    return true;
  }

  /// Dim `first` + 1 becomes part of `first`, and of no further use.
  void merge(unsigned first) {
    for (auto [value, map] : llvm::zip_equal(values, maps)) {
      if (!map.isFunctionOfDim(first))
        continue;
      unsigned at = *adjacentResults(map, first);
      value = memref::CollapseShapeOp::create(builder, loc, value, joinAt(at, map.getNumResults()));
      map = map.dropResult(at + 1);
    }
    ends[first] = arith::MulIOp::create(builder, loc, ends[first], ends[first + 1]);
    extents[first] = ShapedType::isDynamic(extents[first]) || ShapedType::isDynamic(extents[first + 1])
                         ? ShapedType::kDynamic
                         : extents[first] * extents[first + 1];
    merged.insert(first + 1);
  }

  /// From the inside out, so that a merged dim's successor is always the one that was just merged.
  void mergeLoops(ArrayRef<unsigned> tile) {
    for (unsigned next = op.getNumLoops(); next-- > 1;)
      if (!llvm::is_contained(tile, next - 1) && !llvm::is_contained(tile, next) && canMerge(next - 1))
        merge(next - 1);
  }

  /// How well `dim` runs as the innermost loop: operands that it walks contiguously, against those it strides.
  double contiguity(unsigned dim) {
    double score = 0;
    for (OpOperand &operand : op->getOpOperands()) {
      AffineMap map = maps[operand.getOperandNumber()];
      if (!isa<MemRefType>(operand.get().getType()) || !map.getNumResults())
        continue;
      if (map.getResults().back() == builder.getAffineDimExpr(dim))
        score += 2;
      else if (!map.isFunctionOfDim(dim))
        score += 1;
      else
        score -= op.isDpsInit(&operand) ? 2 : 1;
    }
    if (extents[dim] != ShapedType::kDynamic && extents[dim] < 8)
      score -= 4.0 / std::max<int64_t>(extents[dim], 1);
    return score;
  }

  /// Completes `order`, which starts with the tile's dims: other parallel dims, reductions, the innermost.
  void orderLoops(SmallVectorImpl<unsigned> &order) {
    unsigned count = op.getNumLoops();
    SmallVector<unsigned> rest;
    for (bool reductions : {false, true})
      for (unsigned dim = 0; dim < count; ++dim)
        if (isReduction(dim) == reductions && !llvm::is_contained(order, dim) && !merged.contains(dim))
          rest.push_back(dim);
    if (!rest.empty()) {
      auto best = llvm::max_element(rest, [&](unsigned a, unsigned b) { return contiguity(a) < contiguity(b); });
      std::rotate(best, best + 1, rest.end());
    } else if (order.size() > 1) {
      // All dims are split: the innermost may still be chosen among them.
      auto best = llvm::max_element(order, [&](unsigned a, unsigned b) { return contiguity(a) < contiguity(b); });
      std::rotate(best, best + 1, order.end());
    }
    order.append(rest);
  }

  void emitLoop(ArrayRef<unsigned> order, unsigned depth) {
    if (depth == order.size()) {
      SmallVector<Value> stored = emitPayload({});
      for (auto [init, value] : llvm::zip_equal(op.getDpsInitsMutable(), stored))
        memref::StoreOp::create(builder, loc, value, memory(init), indices(init));
      return;
    }
    unsigned dim = order[depth];
    bool accumulates = depth + 1 == order.size() && isReduction(dim);
    SmallVector<Value> carried;
    if (accumulates)
      for (OpOperand &init : op.getDpsInitsMutable())
        carried.push_back(memref::LoadOp::create(builder, loc, memory(init), indices(init)));
    auto loop = scf::ForOp::create(builder, loc, begins[dim], ends[dim], step, carried);
    {
      OpBuilder::InsertionGuard guard(builder);
      builder.setInsertionPointToStart(loop.getBody());
      ivs[dim] = loop.getInductionVar();
      if (accumulates) {
        SmallVector<Value> next = emitPayload(loop.getRegionIterArgs());
        scf::YieldOp::create(builder, loc, next);
      } else {
        emitLoop(order, depth + 1);
      }
    }
    if (accumulates)
      for (auto [init, value] : llvm::zip_equal(op.getDpsInitsMutable(), loop.getResults()))
        memref::StoreOp::create(builder, loc, value, memory(init), indices(init));
  }

  Value memory(OpOperand &operand) { return values[operand.getOperandNumber()]; }

  SmallVector<Value> indices(OpOperand &operand) {
    AffineMap map = maps[operand.getOperandNumber()];
    SmallVector<Value> result;
    for (AffineExpr expr : map.getResults()) {
      if (auto dim = dyn_cast<AffineDimExpr>(expr)) {
        result.push_back(ivs[dim.getPosition()]);
        continue;
      }
      SmallVector<Value> operands(ivs);
      for (Value &iv : operands)
        if (!iv)
          iv = begins.front(); // a dim that this expression does not use, as it is bound in a loop further in
      AffineMap single = AffineMap::get(map.getNumDims(), 0, expr);
      result.push_back(affine::makeComposedAffineApply(builder, loc, single, getAsOpFoldResult(operands)).getResult());
    }
    return result;
  }

  /// Clones the payload; `carried` stands for the destinations' current values when the loop keeps them.
  SmallVector<Value> emitPayload(ValueRange carried) {
    Block *payload = op.getBlock();
    IRMapping mapping;
    for (OpOperand &operand : op->getOpOperands()) {
      BlockArgument argument = payload->getArgument(operand.getOperandNumber());
      if (op.isDpsInit(&operand) && !carried.empty())
        mapping.map(argument, carried[operand.getOperandNumber() - op.getNumDpsInputs()]);
      else if (!isa<MemRefType>(operand.get().getType()))
        mapping.map(argument, operand.get());
      else if (!argument.use_empty())
        mapping.map(argument, memref::LoadOp::create(builder, loc, memory(operand), indices(operand)));
    }
    auto flags = arith::FastMathFlags::contract;
    if (llvm::is_contained(iterators, utils::IteratorType::reduction))
      flags = flags | arith::FastMathFlags::reassoc;
    for (Operation &inner : payload->without_terminator()) {
      if (auto index = dyn_cast<linalg::IndexOp>(inner)) {
        mapping.map(index.getResult(), ivs[index.getDim()]);
        continue;
      }
      Operation *cloned = builder.clone(inner, mapping);
      if (isa<arith::AddFOp, arith::SubFOp, arith::MulFOp>(cloned))
        cloned->setAttr("fastmath", arith::FastMathFlagsAttr::get(op.getContext(), flags));
    }
    SmallVector<Value> results;
    for (Value yielded : payload->getTerminator()->getOperands())
      results.push_back(mapping.lookupOrDefault(yielded));
    return results;
  }

  OpBuilder &builder;
  linalg::GenericOp op;
  Location loc;
  SmallVector<utils::IteratorType> iterators;
  SmallVector<Value> values;   // the operands, as merged loops see them
  SmallVector<AffineMap> maps; // and how
  SmallVector<Value> begins, ends, ivs;
  llvm::SmallSet<unsigned, 4> merged; // dims that are part of the one before them
  SmallVector<int64_t> extents;
  Value step;
};

} // namespace

LogicalResult emitTiled(OpBuilder &builder, Operation *op, ArrayRef<TileRange> tile) {
  if (isKernelOp(op))
    return emitKernelCall(builder, op, tile);
  return LoopEmitter(builder, cast<linalg::GenericOp>(op)).emit(tile);
}

} // namespace vmpack::lowering
