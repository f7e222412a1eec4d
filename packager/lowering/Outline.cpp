//===- Outline.cpp - a group of ops moves into a dispatch function --------------------------------------===//
#include "packager/lowering/Outline.h"
#include "packager/dialect/Metadata.h"
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/KernelCalls.h"
#include "packager/lowering/Loops.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Arith/Utils/Utils.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Utils/StaticValueUtils.h"
#include "mlir/IR/IRMapping.h"
#include "mlir/Transforms/RegionUtils.h"

#include "llvm/ADT/SetVector.h"

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {
namespace {

/// What a group uses from outside, sorted into what the dispatch is handed.
struct Captures {
  llvm::SetVector<Value> roots;        ///< memrefs: bindings
  llvm::SetVector<Operation *> cloned; ///< views and constants: made again inside, in this order
  llvm::SetVector<Value> scalars;      ///< everything else: constants of the dispatch
};

void capture(Value value, Captures &captures) {
  Operation *definition = value.getDefiningOp();
  if (definition && (isView(definition) || definition->hasTrait<OpTrait::ConstantLike>() ||
                     isa<memref::DimOp, arith::IndexCastOp>(definition))) {
    for (Value operand : definition->getOperands())
      capture(operand, captures);
    captures.cloned.insert(definition);
  } else if (auto type = dyn_cast<MemRefType>(value.getType())) {
    captures.roots.insert(value);
  } else {
    captures.scalars.insert(value);
  }
}

Captures captureAll(ArrayRef<Operation *> ops) {
  Captures captures;
  for (Operation *op : ops) {
    for (Value operand : op->getOperands())
      capture(operand, captures);
    for (Region &region : op->getRegions()) {
      llvm::SetVector<Value> used;
      getUsedValuesDefinedAbove(region, used);
      for (Value value : used)
        capture(value, captures);
    }
  }
  return captures;
}

/// A scalar as the index that crosses the dispatch, and back.
Value toIndex(OpBuilder &builder, Location loc, Value value) {
  Type type = value.getType();
  if (type.isIndex())
    return value;
  if (isa<FloatType>(type))
    value = arith::BitcastOp::create(builder, loc, builder.getIntegerType(type.getIntOrFloatBitWidth()), value);
  return arith::IndexCastUIOp::create(builder, loc, builder.getIndexType(), value);
}
Value fromIndex(OpBuilder &builder, Location loc, Value index, Type type) {
  if (type.isIndex())
    return index;
  Value value = arith::IndexCastUIOp::create(builder, loc, builder.getIntegerType(type.getIntOrFloatBitWidth()), index);
  return isa<FloatType>(type) ? Value(arith::BitcastOp::create(builder, loc, type, value)) : value;
}

void collectNames(Location loc, llvm::SetVector<StringRef> &names) {
  if (auto name = dyn_cast<NameLoc>(loc))
    names.insert(name.getName().strref());
  else if (auto fused = dyn_cast<FusedLoc>(loc))
    for (Location part : fused.getLocations())
      collectNames(part, names);
}

StringRef baseNameOf(Operation *op) {
  if (isKernelOp(op))
    return op->getName().stripDialect();
  auto generic = cast<linalg::GenericOp>(op);
  if (generic.getNumReductionLoops())
    return "reduce";
  return generic.getBlock()->getOperations().size() == 1 ? "copy" : "elementwise";
}

/// Bytes of all bindings' static types: what a dispatch moves at least.
uint64_t bytesOf(const Captures &captures) {
  uint64_t bytes = 0;
  for (Value root : captures.roots) {
    auto type = cast<MemRefType>(root.getType());
    if (!type.hasStaticShape())
      return 0;
    bytes += type.getNumElements() * llvm::divideCeil(type.getElementTypeBitWidth(), 8);
  }
  return bytes;
}

} // namespace

std::string Outliner::nameFor(ArrayRef<Operation *> ops) {
  // The op that does most of the work names the dispatch.
  Operation *main = ops.front();
  for (Operation *op : ops)
    if (isKernelOp(op) || (!isKernelOp(main) && baseNameOf(op) == "reduce"))
      main = op;
  if (main == ops.front() && ops.size() > 1 && baseNameOf(main) == "copy")
    main = ops.back();
  return (baseNameOf(main) + "_" + Twine(descriptions.size())).str();
}

namespace {

/// Builds one dispatch: the operands outside, the function inside, and the grid that joins them.
class DispatchBuilder {
public:
  DispatchBuilder(ArrayRef<Operation *> ops, Location loc)
      : ops(ops), loc(loc), captures(captureAll(ops)), outer(ops.back()), inner(ops.back()->getContext()) {}

  const Captures &captured() const { return captures; }

  /// What the dispatch is handed: bindings, then the sizes of dynamic ones, then scalars.
  LogicalResult collectOperands() {
    operands.assign(captures.roots.begin(), captures.roots.end());
    for (Value root : captures.roots) {
      auto type = cast<MemRefType>(root.getType());
      if (!type.getLayout().isIdentity())
        return ops.back()->emitOpError("works on memory of an unforeseen layout ") << type;
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (type.isDynamicDim(dim))
          operands.push_back(memref::DimOp::create(outer, loc, root, dim));
    }
    for (Value scalar : captures.scalars) {
      Type type = scalar.getType();
      if (!type.isIntOrIndexOrFloat() || (!type.isIndex() && type.getIntOrFloatBitWidth() > 64))
        return ops.back()->emitOpError("uses a value of type ") << type << " that cannot cross a dispatch";
      operands.push_back(toIndex(outer, loc, scalar));
    }
    return success();
  }

  /// Makes the function, up to where the ops go: parameters become what the ops knew outside.
  void makeFunction(ModuleOp module, StringRef name, int32_t ordinal) {
    SmallVector<Type> types(captures.roots.size(), LLVM::LLVMPointerType::get(inner.getContext()));
    types.resize(operands.size() + 3, inner.getIndexType());
    inner.setInsertionPointToEnd(module.getBody());
    auto function = func::FuncOp::create(inner, loc, name, inner.getFunctionType(types, {}));
    function.setPrivate();
    function->setAttr(dispatchFunctionAttr, inner.getI32IntegerAttr(ordinal));
    function->setAttr(bindingCountAttr, inner.getI32IntegerAttr(captures.roots.size()));
    body = function.addEntryBlock();
    inner.setInsertionPointToEnd(body);
    func::ReturnOp::create(inner, loc);
    inner.setInsertionPoint(body->getTerminator());

    unsigned position = captures.roots.size();
    for (auto [index, root] : llvm::enumerate(captures.roots)) {
      auto type = cast<MemRefType>(root.getType());
      auto sizes = ValueRange(body->getArguments()).slice(position, type.getNumDynamicDims());
      position += type.getNumDynamicDims();
      mapping.map(root, ViewOp::create(inner, loc, type, body->getArgument(index), sizes).getResult());
    }
    for (Value scalar : captures.scalars)
      mapping.map(scalar, fromIndex(inner, loc, body->getArgument(position++), scalar.getType()));
    for (Operation *definition : captures.cloned)
      inner.clone(*definition, mapping);
  }

  /// Relates workgroups to tiles: x counts chunks of the last split dim, y and z single indices before it.
  void makeGrid(unsigned split, int64_t chunk) {
    Value outside = cast<DestinationStyleOpInterface>(ops.front()).getDpsInits().front();
    Value inside = mapping.lookup(outside);
    for (unsigned dim = 0; dim < split; ++dim) {
      unsigned axis = split - 1 - dim;
      Value id = body->getArgument(operands.size() + axis);
      OpFoldResult size = memref::getMixedSize(outer, loc, outside, dim);
      Value extent = getValueOrCreateConstantIndexOp(outer, loc, size);
      if (axis) {
        Value one = arith::ConstantIndexOp::create(inner, loc, 1);
        tile.push_back({id, arith::AddIOp::create(inner, loc, id, one)});
      } else {
        Value step = arith::ConstantIndexOp::create(inner, loc, chunk);
        Value begin = arith::MulIOp::create(inner, loc, id, step);
        Value bound = getValueOrCreateConstantIndexOp(inner, loc, memref::getMixedSize(inner, loc, inside, dim));
        Value end = arith::AddIOp::create(inner, loc, begin, step);
        tile.push_back({begin, arith::MinSIOp::create(inner, loc, end, bound)});
        extent = chunkCount(size, extent, chunk);
      }
      grid.insert(grid.begin(), extent);
    }
    while (grid.size() < 3)
      grid.push_back(arith::ConstantIndexOp::create(outer, loc, 1));
  }

  LogicalResult emitOps() {
    for (Operation *op : ops) {
      Operation *cloned = inner.clone(*op, mapping);
      inner.setInsertionPoint(cloned);
      if (failed(emitTiled(inner, cloned, tile)))
        return failure();
      inner.setInsertionPoint(body->getTerminator());
      cloned->erase();
    }
    return success();
  }

  void dispatch(StringRef name, int32_t ordinal) {
    DispatchOp::create(outer, loc, name, grid[0], grid[1], grid[2], operands, ordinal);
    BarrierOp::create(outer, loc);
  }

private:
  Value chunkCount(OpFoldResult size, Value extent, int64_t chunk) {
    if (auto fixed = getConstantIntValue(size))
      return arith::ConstantIndexOp::create(outer, loc, llvm::divideCeil(*fixed, chunk));
    return arith::CeilDivSIOp::create(outer, loc, extent, arith::ConstantIndexOp::create(outer, loc, chunk));
  }

  ArrayRef<Operation *> ops;
  Location loc;
  Captures captures;
  OpBuilder outer, inner;
  SmallVector<Value> operands, grid;
  SmallVector<TileRange> tile;
  IRMapping mapping;
  Block *body = nullptr;
};

} // namespace

LogicalResult Outliner::outline(ArrayRef<Operation *> ops, unsigned split, int64_t chunk) {
  SmallVector<Location> locations;
  uint64_t flops = 0;
  for (Operation *op : ops) {
    locations.push_back(op->getLoc());
    flops += isKernelOp(op) ? kernelFlops(op) : 0;
  }
  Location loc = FusedLoc::get(module.getContext(), locations);
  std::string name = nameFor(ops);
  int32_t ordinal = descriptions.size();

  DispatchBuilder dispatch(ops, loc);
  if (failed(dispatch.collectOperands()))
    return failure();
  dispatch.makeFunction(module, name, ordinal);
  dispatch.makeGrid(split, chunk);
  if (failed(dispatch.emitOps()))
    return failure();
  dispatch.dispatch(name, ordinal);

  llvm::SetVector<StringRef> names;
  collectNames(loc, names);
  Builder builder(module.getContext());
  descriptions.push_back(builder.getDictionaryAttr({
      builder.getNamedAttr("name", builder.getStringAttr(name)),
      builder.getNamedAttr("location", builder.getStringAttr(llvm::join(names, "+"))),
      builder.getNamedAttr("flops", builder.getI64IntegerAttr(flops)),
      builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytesOf(dispatch.captured()))),
  }));
  for (Operation *op : ops)
    op->erase();
  return success();
}

void Outliner::finish() { module->setAttr(dispatchesAttr, ArrayAttr::get(module.getContext(), descriptions)); }

} // namespace vmpack::lowering
