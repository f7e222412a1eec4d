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

LogicalResult Outliner::outline(ArrayRef<Operation *> ops, unsigned split, int64_t chunk) {
  Operation *last = ops.back();
  SmallVector<Location> locations;
  for (Operation *op : ops)
    locations.push_back(op->getLoc());
  MLIRContext *context = module.getContext();
  Location loc = FusedLoc::get(context, locations);
  Captures captures = captureAll(ops);
  std::string name = nameFor(ops);

  // Sizes of dynamic roots cross as constants.
  OpBuilder builder(last);
  SmallVector<Value> operands(captures.roots.begin(), captures.roots.end());
  SmallVector<Type> types(operands.size(), LLVM::LLVMPointerType::get(context));
  for (Value root : captures.roots) {
    auto type = cast<MemRefType>(root.getType());
    if (!type.getLayout().isIdentity())
      return last->emitOpError("works on memory of an unforeseen layout ") << type;
    for (int64_t dim = 0; dim < type.getRank(); ++dim)
      if (type.isDynamicDim(dim))
        operands.push_back(memref::DimOp::create(builder, loc, root, dim));
  }
  for (Value scalar : captures.scalars) {
    if (!scalar.getType().isIntOrIndexOrFloat() ||
        (!scalar.getType().isIndex() && scalar.getType().getIntOrFloatBitWidth() > 64))
      return last->emitOpError("uses a value of type ") << scalar.getType() << " that cannot cross a dispatch";
    operands.push_back(toIndex(builder, loc, scalar));
  }
  types.resize(operands.size() + 3, builder.getIndexType());

  OpBuilder moduleBuilder(module.getBodyRegion());
  moduleBuilder.setInsertionPointToEnd(module.getBody());
  auto function = func::FuncOp::create(moduleBuilder, loc, name, moduleBuilder.getFunctionType(types, {}));
  function.setPrivate();
  function->setAttr(dispatchFunctionAttr, builder.getI32IntegerAttr(descriptions.size()));
  function->setAttr(bindingCountAttr, builder.getI32IntegerAttr(captures.roots.size()));
  Block *body = function.addEntryBlock();
  OpBuilder inner = OpBuilder::atBlockEnd(body);
  func::ReturnOp::create(inner, loc);
  inner.setInsertionPoint(body->getTerminator());

  IRMapping mapping;
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

  // The tile of this workgroup: x counts chunks of the last split dim, y and z single indices before it.
  SmallVector<TileRange> tile;
  SmallVector<Value> grid;
  Value destination = mapping.lookup(cast<DestinationStyleOpInterface>(ops.front()).getDpsInits().front());
  Value outerDestination = cast<DestinationStyleOpInterface>(ops.front()).getDpsInits().front();
  Value one = arith::ConstantIndexOp::create(inner, loc, 1);
  for (unsigned dim = 0; dim < split; ++dim) {
    unsigned axis = split - 1 - dim;
    Value id = body->getArgument(position + axis);
    OpFoldResult outerSize = memref::getMixedSize(builder, loc, outerDestination, dim);
    Value extent = getValueOrCreateConstantIndexOp(builder, loc, outerSize);
    if (axis) {
      tile.push_back({id, arith::AddIOp::create(inner, loc, id, one)});
    } else {
      Value size = arith::ConstantIndexOp::create(inner, loc, chunk);
      Value begin = arith::MulIOp::create(inner, loc, id, size);
      Value innerExtent =
          getValueOrCreateConstantIndexOp(inner, loc, memref::getMixedSize(inner, loc, destination, dim));
      Value end = arith::AddIOp::create(inner, loc, begin, size);
      tile.push_back({begin, arith::MinSIOp::create(inner, loc, end, innerExtent)});
      if (auto fixed = getConstantIntValue(outerSize))
        extent = arith::ConstantIndexOp::create(builder, loc, llvm::divideCeil(*fixed, chunk));
      else
        extent = arith::CeilDivSIOp::create(builder, loc, extent, arith::ConstantIndexOp::create(builder, loc, chunk));
    }
    grid.insert(grid.begin(), extent);
  }
  while (grid.size() < 3)
    grid.push_back(arith::ConstantIndexOp::create(builder, loc, 1));

  uint64_t flops = 0;
  for (Operation *op : ops) {
    Operation *cloned = inner.clone(*op, mapping);
    inner.setInsertionPoint(cloned);
    if (failed(emitTiled(inner, cloned, tile)))
      return failure();
    inner.setInsertionPoint(body->getTerminator());
    cloned->erase();
    flops += isKernelOp(op) ? kernelFlops(op) : 0;
  }

  DispatchOp::create(builder, loc, name, grid[0], grid[1], grid[2], operands, int32_t(descriptions.size()));
  BarrierOp::create(builder, loc);
  for (Operation *op : ops)
    op->erase();

  llvm::SetVector<StringRef> names;
  collectNames(loc, names);
  descriptions.push_back(builder.getDictionaryAttr({
      builder.getNamedAttr("name", builder.getStringAttr(name)),
      builder.getNamedAttr("location", builder.getStringAttr(llvm::join(names, "+"))),
      builder.getNamedAttr("flops", builder.getI64IntegerAttr(flops)),
      builder.getNamedAttr("bytes", builder.getI64IntegerAttr(bytesOf(captures))),
  }));
  return success();
}

void Outliner::finish() { module->setAttr(dispatchesAttr, ArrayAttr::get(module.getContext(), descriptions)); }

} // namespace vmpack::lowering
