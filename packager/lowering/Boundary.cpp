//===- Boundary.cpp - public functions take buffers -----------------------------------------------------===//
//
//   func @main(%x: tensor<?x3xf32> {vmpk.dims = ["n", 3]}) -> tensor<?x4xf32>
// becomes
//   func @main(%x: memref<?x3xf32>, %y: memref<?x4xf32>, %n: index) -> index     the dynamic dims of the outputs
//     %t = bufferization.to_tensor %x restrict … bufferization.materialize_in_destination %r in restrict writable %y
//
// The sizes of dynamic dims are values of their own from here on, one for each symbol, so that whatever is computed
// from them can be computed without the tensors: the arena plan and vmpk_module_measure do.
//
//===----------------------------------------------------------------------------------------------------===//
#include "packager/dialect/Metadata.h"
#include "packager/lowering/Passes.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Bufferization/IR/Bufferization.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/Dialect/MemRef/IR/MemRef.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "vmpk/abi.h"

#include "llvm/ADT/StringMap.h"

using namespace mlir;
using namespace vmpack::dialect;

namespace vmpack::lowering {
namespace {

/// The ABI's dtype of an element type, or INVALID.
uint32_t dtypeOf(Type type, bool isUnsigned) {
  if (type.isF32())
    return VMPK_DTYPE_F32;
  if (type.isF64())
    return VMPK_DTYPE_F64;
  if (type.isF16())
    return VMPK_DTYPE_F16;
  if (type.isBF16())
    return VMPK_DTYPE_BF16;
  auto integer = dyn_cast<IntegerType>(type);
  if (!integer)
    return VMPK_DTYPE_INVALID;
  isUnsigned |= integer.isUnsigned();
  switch (integer.getWidth()) {
  case 1:
    return VMPK_DTYPE_BOOL;
  case 8:
    return isUnsigned ? VMPK_DTYPE_U8 : VMPK_DTYPE_I8;
  case 16:
    return isUnsigned ? VMPK_DTYPE_U16 : VMPK_DTYPE_I16;
  case 32:
    return isUnsigned ? VMPK_DTYPE_U32 : VMPK_DTYPE_I32;
  case 64:
    return isUnsigned ? VMPK_DTYPE_U64 : VMPK_DTYPE_I64;
  default:
    return VMPK_DTYPE_INVALID;
  }
}

/// Builds one function's new boundary.
class BoundaryBuilder {
public:
  explicit BoundaryBuilder(func::FuncOp function) : function(function), builder(function.getContext()) {}

  LogicalResult run() {
    auto type = function.getFunctionType();
    for (Type tensor : llvm::concat<const Type>(type.getInputs(), type.getResults()))
      if (!isa<RankedTensorType>(tensor))
        return function.emitError("public function '")
               << function.getSymName() << "' must take and return ranked tensors only, but has " << tensor;
    if (!llvm::hasSingleElement(function.getBody()))
      return function.emitError("public function '") << function.getSymName() << "' must have a single block";
    if (failed(describe(type.getInputs(), /*results=*/false)) || failed(describe(type.getResults(), /*results=*/true)))
      return failure();
    rewriteBody();
    attachEntry();
    return success();
  }

private:
  Attribute attrOf(unsigned index, bool result, StringRef name) {
    return result ? function.getResultAttr(index, name) : function.getArgAttr(index, name);
  }

  /// The ordinal of a symbol, made on first sight when `create`; -1 when unknown.
  int64_t symbol(StringRef name, bool create) {
    auto found = symbols.find(name);
    if (found != symbols.end())
      return found->second;
    if (!create)
      return -1;
    int64_t ordinal = symbols.size();
    symbols[name] = ordinal;
    symbolNames.push_back(name.str());
    return ordinal;
  }

  LogicalResult describe(TypeRange types, bool results) {
    for (auto [index, type] : llvm::enumerate(types)) {
      auto tensor = cast<RankedTensorType>(type);
      auto name = dyn_cast_or_null<StringAttr>(attrOf(index, results, "vmpk.name"));
      std::string made = (results ? "output_" : "input_") + std::to_string(index);
      uint32_t dtype = dtypeOf(tensor.getElementType(), bool(attrOf(index, results, "vmpk.unsigned")));
      if (dtype == VMPK_DTYPE_INVALID || tensor.getRank() > VMPK_MAX_RANK)
        return function.emitError("the type ")
               << tensor << " of '" << (name ? name.getValue() : StringRef(made)) << "' cannot cross the boundary";
      auto dims = dyn_cast_or_null<ArrayAttr>(attrOf(index, results, "vmpk.dims"));
      SmallVector<int64_t> entries;
      for (int64_t dim = 0; dim < tensor.getRank(); ++dim) {
        if (!tensor.isDynamicDim(dim)) {
          entries.push_back(tensor.getDimSize(dim));
          continue;
        }
        auto symbolic = dims && dim < int64_t(dims.size()) ? dyn_cast<StringAttr>(dims[dim]) : StringAttr();
        std::string symbolName = symbolic ? symbolic.str() : results ? "" : made + "_d" + std::to_string(dim);
        int64_t ordinal = symbol(symbolName, !results);
        entries.push_back(ordinal < 0 ? VMPK_DIM_COMPUTED : -1 - ordinal);
      }
      (results ? outputs : inputs)
          .push_back(builder.getDictionaryAttr({
              builder.getNamedAttr("name", name ? name : builder.getStringAttr(made)),
              builder.getNamedAttr("dtype", builder.getI32IntegerAttr(dtype)),
              builder.getNamedAttr("dims", builder.getI64ArrayAttr(entries)),
          }));
    }
    return success();
  }

  static MemRefType bufferType(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return MemRefType::get(tensor.getShape(), tensor.getElementType());
  }

  void rewriteBody() {
    Block &body = function.getBody().front();
    Location loc = function.getLoc();
    auto returnOp = cast<func::ReturnOp>(body.getTerminator());
    unsigned inputCount = body.getNumArguments();

    SmallVector<Type> argumentTypes;
    SmallVector<BlockArgument> outputArguments, symbolArguments;
    for (unsigned index = 0; index < inputCount; ++index)
      argumentTypes.push_back(bufferType(body.getArgument(index).getType()));
    for (Value result : returnOp.getOperands()) {
      argumentTypes.push_back(bufferType(result.getType()));
      outputArguments.push_back(body.addArgument(argumentTypes.back(), loc));
    }
    for (size_t count = symbols.size(); count; --count) {
      argumentTypes.push_back(builder.getIndexType());
      symbolArguments.push_back(body.addArgument(builder.getIndexType(), loc));
    }

    builder.setInsertionPointToStart(&body);
    for (unsigned index = 0; index < inputCount; ++index)
      replaceInput(body.getArgument(index), cast<MemRefType>(argumentTypes[index]), index, symbolArguments);

    builder.setInsertionPoint(returnOp);
    SmallVector<Value> outputDims;
    for (auto [value, buffer] : llvm::zip_equal(returnOp.getOperands(), outputArguments)) {
      auto type = cast<RankedTensorType>(value.getType());
      for (int64_t dim = 0; dim < type.getRank(); ++dim)
        if (type.isDynamicDim(dim))
          outputDims.push_back(tensor::DimOp::create(builder, loc, value, dim));
      auto store = bufferization::MaterializeInDestinationOp::create(builder, loc, value, buffer);
      store.setRestrict(true);
      store.setWritable(true);
    }
    func::ReturnOp::create(builder, loc, outputDims);
    returnOp.erase();
    function.setType(builder.getFunctionType(argumentTypes, ValueRange(outputDims).getTypes()));
    function.removeArgAttrsAttr();
    function.removeResAttrsAttr();
  }

  /// Reads an input through its buffer; sizes of its dynamic dims are their symbols.
  void replaceInput(BlockArgument argument, MemRefType type, unsigned index, ArrayRef<BlockArgument> symbolArguments) {
    auto tensorType = cast<RankedTensorType>(argument.getType());
    ArrayAttr dims = cast<ArrayAttr>(cast<DictionaryAttr>(inputs[index]).get("dims"));
    for (Operation *user : llvm::make_early_inc_range(argument.getUsers())) {
      auto dimOp = dyn_cast<tensor::DimOp>(user);
      std::optional<int64_t> dim = dimOp ? dimOp.getConstantIndex() : std::nullopt;
      if (!dim || *dim < 0 || *dim >= tensorType.getRank() || !tensorType.isDynamicDim(*dim))
        continue;
      int64_t entry = cast<IntegerAttr>(dims[*dim]).getInt();
      dimOp.replaceAllUsesWith(Value(symbolArguments[-1 - entry]));
      dimOp.erase();
    }
    argument.setType(type);
    if (argument.use_empty())
      return;
    auto tensorValue = bufferization::ToTensorOp::create(builder, function.getLoc(), tensorType, argument,
                                                         /*restrict=*/true, /*writable=*/false);
    argument.replaceAllUsesExcept(tensorValue.getResult(), tensorValue);
  }

  void attachEntry() {
    SmallVector<Attribute> symbolAttrs;
    auto bounds = function->getAttrOfType<DictionaryAttr>("vmpk.bounds");
    for (const std::string &name : symbolNames) {
      int64_t minimum = 0, maximum = INT64_MAX;
      if (auto range = bounds ? dyn_cast_or_null<ArrayAttr>(bounds.get(name)) : ArrayAttr();
          range && range.size() == 2) {
        minimum = cast<IntegerAttr>(range[0]).getInt();
        maximum = cast<IntegerAttr>(range[1]).getInt();
      }
      symbolAttrs.push_back(builder.getDictionaryAttr({
          builder.getNamedAttr("name", builder.getStringAttr(name)),
          builder.getNamedAttr("minimum", builder.getI64IntegerAttr(minimum)),
          builder.getNamedAttr("maximum", builder.getI64IntegerAttr(maximum)),
      }));
    }
    function->removeAttr("vmpk.bounds");
    function->setAttr(entryAttr, builder.getDictionaryAttr({
                                     builder.getNamedAttr("name", function.getSymNameAttr()),
                                     builder.getNamedAttr("inputs", builder.getArrayAttr(inputs)),
                                     builder.getNamedAttr("outputs", builder.getArrayAttr(outputs)),
                                     builder.getNamedAttr("symbols", builder.getArrayAttr(symbolAttrs)),
                                 }));
  }

  func::FuncOp function;
  OpBuilder builder;
  llvm::StringMap<int64_t> symbols;
  SmallVector<std::string> symbolNames;
  SmallVector<Attribute> inputs, outputs;
};

struct BoundaryPass : PassWrapper<BoundaryPass, OperationPass<ModuleOp>> {
  MLIR_DEFINE_EXPLICIT_INTERNAL_INLINE_TYPE_ID(BoundaryPass)
  StringRef getArgument() const override { return "vmpk-boundary"; }
  void getDependentDialects(DialectRegistry &registry) const override {
    registry.insert<bufferization::BufferizationDialect, memref::MemRefDialect, tensor::TensorDialect>();
  }

  void runOnOperation() override {
    unsigned ordinal = 0;
    for (func::FuncOp function : getOperation().getOps<func::FuncOp>()) {
      if (!function.isPublic() || function.isExternal())
        continue;
      if (failed(BoundaryBuilder(function).run()))
        return signalPassFailure();
      // The public name lives in the entry from here on; dispatches may be called anything else.
      function.setSymName("schedule." + std::to_string(ordinal++));
    }
  }
};

} // namespace

std::unique_ptr<Pass> createBoundaryPass() { return std::make_unique<BoundaryPass>(); }

} // namespace vmpack::lowering
