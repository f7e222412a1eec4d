//===- Arena.cpp - every allocation gets its place in one arena -----------------------------------------===//
//
//   %a = memref.alloc() : memref<64xf32>      →  %a = memref.view %arena[%offset][] : memref<?xi8> to memref<64xf32>
//   %w = memref.get_global @w                 →  %w = memref.view %weights[%offset][]
//
//   arena:  | arguments of the dispatches | static allocations | slots of the dynamic ones |
//
// Static allocations are placed by size, largest first, at the lowest offset that no allocation alive at the same time
// takes. A dynamic allocation shares a slot with others that are never alive with it; a slot's size is the maximum of
// its members', an expression of the symbolic dims. The same expressions become the function that measures the arena:
//
//   func @measure.0(%n: index) -> (index arena bytes, index... dynamic dims of the outputs)
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/dialect/Metadata.h"
#include "packager/dialect/Vmpk.h"
#include "packager/lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/Transforms/BufferViewFlowAnalysis.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/IR/IRMapping.h"
#include "vmpk/abi.h"

#include "llvm/ADT/MapVector.h"
#include "llvm/Support/xxhash.h"

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {
namespace {

constexpr int64_t alignment = VMPK_ALIGNMENT;
/// What a dynamic dim is taken for when slots are compared.
constexpr int64_t assumedDim = 64;

/// An allocation: `bytes` times the dynamic dims, alive over [first, last] of the function's top-level ops.
struct Allocation {
  memref::AllocOp op;
  int64_t bytes;
  SmallVector<Value> dims;
  unsigned first, last;

  bool overlaps(const Allocation &other) const { return first <= other.last && other.first <= last; }
  double weight() const { return double(bytes) * std::pow(double(assumedDim), double(dims.size())); }
};

/// Clones what values are computed from, when that is arithmetic on the function's size arguments alone.
class SizeCloner {
public:
  SizeCloner(OpBuilder &builder, IRMapping &mapping) : builder(builder), mapping(mapping) {}

  FailureOr<Value> clone(Value value) {
    if (Value known = mapping.lookupOrNull(value))
      return known;
    Operation *definition = value.getDefiningOp();
    if (!definition || definition->getNumRegions() || !isMemoryEffectFree(definition))
      return failure();
    for (Value operand : definition->getOperands())
      if (failed(clone(operand)))
        return failure();
    builder.clone(*definition, mapping);
    return mapping.lookup(value);
  }

private:
  OpBuilder &builder;
  IRMapping &mapping;
};

class ArenaPlanner {
public:
  ArenaPlanner(func::FuncOp function, const llvm::DenseMap<StringAttr, int64_t> &weightOffsets)
      : function(function), weightOffsets(weightOffsets), builder(function.getContext()), loc(function.getLoc()) {}

  LogicalResult run(unsigned ordinal) {
    resolveArgumentDims();
    collect();
    addMemoryArguments();
    if (failed(place()))
      return failure();
    replaceGlobals();
    function->setAttr(scheduleAttr, builder.getI32IntegerAttr(ordinal));
    return makeMeasure(ordinal);
  }

private:
  /// memref.dim of an argument becomes the symbol, or the value that the function returns for an output's dim.
  void resolveArgumentDims() {
    auto entry = function->getAttrOfType<DictionaryAttr>(entryAttr);
    auto inputs = cast<ArrayAttr>(entry.get("inputs")), outputs = cast<ArrayAttr>(entry.get("outputs"));
    inputCount = inputs.size();
    outputCount = outputs.size();
    Block &body = function.getBody().front();
    auto returnOp = cast<func::ReturnOp>(body.getTerminator());
    llvm::DenseMap<std::pair<unsigned, int64_t>, unsigned> returned;
    for (auto [index, output] : llvm::enumerate(outputs)) {
      auto type = cast<MemRefType>(body.getArgument(inputCount + index).getType());
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (type.isDynamicDim(dim))
          returned[{inputCount + index, dim}] = returned.size();
    }
    function.walk([&](memref::DimOp op) {
      auto argument = dyn_cast<BlockArgument>(op.getSource());
      auto dim = op.getConstantIndex();
      if (!argument || argument.getOwner() != &body || !dim)
        return;
      unsigned index = argument.getArgNumber();
      if (index < inputCount) {
        auto dims = cast<ArrayAttr>(cast<DictionaryAttr>(inputs[index]).get("dims"));
        int64_t value = cast<IntegerAttr>(dims[*dim]).getInt();
        op.replaceAllUsesWith(Value(body.getArgument(inputCount + outputCount + (-1 - value))));
        op.erase();
        return;
      }
      auto found = returned.find({index, *dim});
      if (found == returned.end())
        return;
      OpBuilder here(op);
      IRMapping mapping;
      for (BlockArgument size : body.getArguments().drop_front(inputCount + outputCount))
        mapping.map(size, size);
      FailureOr<Value> value = SizeCloner(here, mapping).clone(returnOp.getOperand(found->second));
      if (failed(value))
        return;
      op.replaceAllUsesWith(*value);
      op.erase();
    });
  }

  void collect() {
    Block &body = function.getBody().front();
    llvm::DenseMap<Operation *, unsigned> order;
    for (Operation &op : body)
      order[&op] = order.size();
    BufferViewFlowAnalysis aliases(function);
    function.walk([&](memref::AllocOp op) {
      MemRefType type = op.getType();
      int64_t elementBytes = llvm::divideCeil(type.getElementTypeBitWidth(), 8);
      int64_t count = 1;
      for (int64_t extent : type.getShape())
        count *= ShapedType::isDynamic(extent) ? 1 : extent;
      Allocation allocation{op, elementBytes * count, SmallVector<Value>(op.getDynamicSizes()), ~0u, 0};
      for (Value alias : aliases.resolve(op.getResult()))
        for (Operation *user : alias.getUsers())
          if (Operation *ancestor = body.findAncestorOpInBlock(*user)) {
            allocation.first = std::min(allocation.first, order[ancestor]);
            allocation.last = std::max(allocation.last, order[ancestor]);
          }
      if (allocation.first == ~0u)
        allocation.first = allocation.last = order[body.findAncestorOpInBlock(*op)];
      allocations.push_back(allocation);
    });
  }

  void addMemoryArguments() {
    Type bytes = MemRefType::get({ShapedType::kDynamic}, builder.getI8Type());
    Block &body = function.getBody().front();
    weights = body.insertArgument(0u, bytes, loc);
    arena = body.insertArgument(0u, bytes, loc);
    SmallVector<Type> types(body.getArgumentTypes());
    function.setType(builder.getFunctionType(types, function.getResultTypes()));
  }

  LogicalResult place() {
    int64_t end = placeArguments();
    SmallVector<Allocation *> fixed, dynamic;
    for (Allocation &allocation : allocations)
      (allocation.dims.empty() ? fixed : dynamic).push_back(&allocation);
    auto bySize = [](Allocation *a, Allocation *b) { return a->weight() > b->weight(); };
    llvm::stable_sort(fixed, bySize);
    llvm::stable_sort(dynamic, bySize);
    int64_t staticSize = placeStatic(fixed, end);
    return placeDynamic(dynamic, staticSize);
  }

  /// The argument blocks of the dispatches come first: small, and each at an address of its own.
  int64_t placeArguments() {
    int64_t offset = 0;
    function.walk([&](DispatchOp op) {
      op->setAttr(argumentsOffsetAttr, builder.getI64IntegerAttr(offset));
      offset += 8 + 8 * int64_t(op.getInputs().size());
    });
    return llvm::alignTo(offset, alignment);
  }

  int64_t placeStatic(ArrayRef<Allocation *> fixed, int64_t begin) {
    int64_t size = begin;
    SmallVector<std::pair<Allocation *, int64_t>> placed;
    for (Allocation *allocation : fixed) {
      int64_t bytes = llvm::alignTo(std::max<int64_t>(allocation->bytes, 1), alignment);
      // `placed` is sorted by offset: the first gap between those alive at the same time is the lowest.
      int64_t offset = begin;
      for (auto [other, start] : placed) {
        if (!allocation->overlaps(*other))
          continue;
        if (offset + bytes <= start)
          break;
        offset = std::max<int64_t>(offset, start + llvm::alignTo(std::max<int64_t>(other->bytes, 1), alignment));
      }
      auto position =
          llvm::upper_bound(placed, offset, [](int64_t value, auto &entry) { return value < entry.second; });
      placed.insert(position, {allocation, offset});
      size = std::max(size, offset + bytes);
      OpBuilder here(allocation->op);
      replace(here, allocation->op, arena, arith::ConstantIndexOp::create(here, loc, offset));
    }
    return size;
  }

  struct Slot {
    SmallVector<Allocation *> members;
  };

  LogicalResult placeDynamic(ArrayRef<Allocation *> dynamic, int64_t begin) {
    SmallVector<Slot> slots;
    for (Allocation *allocation : dynamic) {
      auto slot = llvm::find_if(slots, [&](Slot &candidate) {
        return llvm::none_of(candidate.members, [&](Allocation *member) { return member->overlaps(*allocation); });
      });
      if (slot == slots.end())
        slot = slots.insert(slots.end(), Slot());
      slot->members.push_back(allocation);
    }
    builder.setInsertionPointToStart(&function.getBody().front());
    IRMapping mapping;
    for (BlockArgument size : function.getArguments().drop_front(2 + inputCount + outputCount))
      mapping.map(size, size);
    SizeCloner cloner(builder, mapping);
    Value offset = arith::ConstantIndexOp::create(builder, loc, begin);
    for (Slot &slot : slots) {
      FailureOr<Value> size = slotSize(slot, cloner);
      if (failed(size))
        return failure();
      for (Allocation *member : slot.members) {
        OpBuilder here(member->op);
        replace(here, member->op, arena, offset);
      }
      offset = arith::AddIOp::create(builder, loc, offset, *size);
    }
    arenaSize = offset;
    return success();
  }

  /// The largest member's size, rounded up to the alignment.
  FailureOr<Value> slotSize(const Slot &slot, SizeCloner &cloner) {
    llvm::MapVector<Value, int64_t> largest; // by the product of the dims: only the coefficients differ
    for (Allocation *member : slot.members) {
      Value product;
      for (Value dim : member->dims) {
        FailureOr<Value> cloned = cloner.clone(dim);
        if (failed(cloned))
          return member->op.emitOpError("has a size that depends on data, not on the dims of the inputs: ") << dim,
                 failure();
        product = product ? multiply(product, *cloned) : *cloned;
      }
      int64_t &bytes = largest[product];
      bytes = std::max(bytes, member->bytes);
    }
    Value size;
    for (auto [product, bytes] : largest) {
      Value mine = arith::MulIOp::create(builder, loc, product, arith::ConstantIndexOp::create(builder, loc, bytes));
      size = size ? Value(arith::MaxSIOp::create(builder, loc, size, mine)) : mine;
    }
    Value mask = arith::ConstantIndexOp::create(builder, loc, -alignment);
    Value up = arith::AddIOp::create(builder, loc, size, arith::ConstantIndexOp::create(builder, loc, alignment - 1));
    return Value(arith::AndIOp::create(builder, loc, up, mask));
  }

  Value multiply(Value a, Value b) {
    Value &product = products[{a, b}];
    if (!product)
      product = arith::MulIOp::create(builder, loc, a, b);
    return product;
  }

  void replace(OpBuilder &here, memref::AllocOp op, Value memory, Value offset) {
    auto view = memref::ViewOp::create(here, op.getLoc(), op.getType(), memory, offset, op.getDynamicSizes());
    op.replaceAllUsesWith(view.getResult());
    op.erase();
  }

  void replaceGlobals() {
    function.walk([&](memref::GetGlobalOp op) {
      OpBuilder here(op);
      Value offset = arith::ConstantIndexOp::create(here, loc, weightOffsets.lookup(op.getNameAttr().getAttr()));
      auto view = memref::ViewOp::create(here, op.getLoc(), op.getType(), weights, offset, ValueRange());
      op.replaceAllUsesWith(view.getResult());
      op.erase();
    });
  }

  /// An output's dim that turned out to be a symbol is described as that symbol.
  void nameOutputDims(func::ReturnOp returnOp, unsigned firstSymbol) {
    NamedAttrList entry(function->getAttrOfType<DictionaryAttr>(entryAttr));
    SmallVector<Attribute> outputs;
    unsigned position = 0;
    for (auto output : cast<ArrayAttr>(entry.get("outputs")).getAsRange<DictionaryAttr>()) {
      SmallVector<int64_t> dims;
      for (auto dim : cast<ArrayAttr>(output.get("dims")).getAsRange<IntegerAttr>()) {
        dims.push_back(dim.getInt());
        if (dim.getInt() >= 0)
          continue;
        auto symbol = dyn_cast<BlockArgument>(returnOp.getOperand(position++));
        if (symbol && dim.getInt() == VMPK_DIM_COMPUTED)
          dims.back() = -1 - int64_t(symbol.getArgNumber() - firstSymbol);
      }
      NamedAttrList described(output);
      described.set("dims", builder.getI64ArrayAttr(dims));
      outputs.push_back(described.getDictionary(function.getContext()));
    }
    entry.set("outputs", builder.getArrayAttr(outputs));
    function->setAttr(entryAttr, entry.getDictionary(function.getContext()));
  }

  LogicalResult makeMeasure(unsigned ordinal) {
    unsigned firstSymbol = 2 + inputCount + outputCount;
    auto sizes = function.getArguments().drop_front(firstSymbol);
    auto returnOp = cast<func::ReturnOp>(function.getBody().front().getTerminator());
    nameOutputDims(returnOp, firstSymbol);
    SmallVector<Type> inputs(sizes.size(), builder.getIndexType());
    SmallVector<Type> results(1 + returnOp.getNumOperands(), builder.getIndexType());
    builder.setInsertionPointAfter(function);
    auto measure = func::FuncOp::create(builder, loc, "measure." + std::to_string(ordinal),
                                        builder.getFunctionType(inputs, results));
    measure.setPrivate();
    measure->setAttr(measureAttr, builder.getI32IntegerAttr(ordinal));
    builder.setInsertionPointToStart(measure.addEntryBlock());
    IRMapping mapping;
    for (auto [from, to] : llvm::zip_equal(sizes, measure.getArguments()))
      mapping.map(from, to);
    SizeCloner cloner(builder, mapping);
    SmallVector<Value> answers;
    for (Value value : llvm::concat<Value>(SmallVector<Value>{arenaSize}, SmallVector<Value>(returnOp.getOperands()))) {
      FailureOr<Value> answer = cloner.clone(value);
      if (failed(answer))
        return function.emitError("the shape of an output depends on data, not on the dims of the inputs alone");
      answers.push_back(*answer);
    }
    func::ReturnOp::create(builder, loc, answers);
    function->setAttr(arenaSizeAttr, builder.getI64IntegerAttr(getConstantIntValue(arenaSize).value_or(-1)));
    // The schedule has no more use for what it would return.
    builder.setInsertionPoint(returnOp);
    func::ReturnOp::create(builder, loc);
    returnOp.erase();
    function.setType(builder.getFunctionType(function.getArgumentTypes(), {}));
    return success();
  }

  func::FuncOp function;
  const llvm::DenseMap<StringAttr, int64_t> &weightOffsets;
  OpBuilder builder;
  Location loc;
  unsigned inputCount = 0, outputCount = 0;
  Value arena, weights, arenaSize;
  SmallVector<Allocation> allocations;
  llvm::DenseMap<std::pair<Value, Value>, Value> products;
};

struct ArenaPass : PassWrapper<ArenaPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(ArenaPass)
  StringRef getArgument() const override { return "vmpk-arena"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<arith::ArithDialect, VmpkDialect>();
  }

  void runOnOperation() override {
    llvm::DenseMap<StringAttr, int64_t> offsets = placeWeights();
    unsigned ordinal = 0;
    for (auto function : llvm::to_vector(getOperation().getOps<func::FuncOp>()))
      if (function->hasAttr(entryAttr) && failed(ArenaPlanner(function, offsets).run(ordinal++)))
        return signalPassFailure();
    for (auto global : llvm::to_vector(getOperation().getOps<memref::GlobalOp>()))
      global.erase();
  }

  /// Gives each constant its offset in the weights; equal contents share one.
  llvm::DenseMap<StringAttr, int64_t> placeWeights() {
    ModuleOp module = getOperation();
    OpBuilder builder(module.getBodyRegion());
    builder.setInsertionPointToEnd(module.getBody());
    llvm::DenseMap<StringAttr, int64_t> offsets;
    struct Placed {
      ElementsAttr value;
      int64_t offset;
    };
    llvm::DenseMap<uint64_t, SmallVector<Placed, 1>> known;
    int64_t end = 0;
    for (auto global : llvm::to_vector(module.getOps<memref::GlobalOp>())) {
      auto value = cast<ElementsAttr>(*global.getInitialValue());
      std::vector<char> bytes(byteSize(value.getShapedType()));
      writeElements(value, bytes);
      auto &candidates =
          known[llvm::xxh3_64bits(ArrayRef<uint8_t>(reinterpret_cast<const uint8_t *>(bytes.data()), bytes.size()))];
      auto same = llvm::find_if(candidates, [&](const Placed &candidate) {
        std::vector<char> other(byteSize(candidate.value.getShapedType()));
        writeElements(candidate.value, other);
        return other == bytes;
      });
      if (same != candidates.end()) {
        offsets[global.getSymNameAttr()] = same->offset;
        continue;
      }
      candidates.push_back({value, end});
      offsets[global.getSymNameAttr()] = end;
      WeightOp::create(builder, global.getLoc(), "weight." + std::to_string(end), value, end);
      end = llvm::alignTo(end + std::max<int64_t>(bytes.size(), 1), alignment);
    }
    module->setAttr(weightsSizeAttr, builder.getI64IntegerAttr(end));
    return offsets;
  }
};

} // namespace

std::unique_ptr<Pass> createArenaPass() { return std::make_unique<ArenaPass>(); }

} // namespace vmpack::lowering
