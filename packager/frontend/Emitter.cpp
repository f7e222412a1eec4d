#include "packager/frontend/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"

using namespace vmpack::frontend;
namespace arith = mlir::arith;

/// Constants up to this many bytes are printed in the IR, larger ones are resources.
static constexpr size_t inlineBytes = 1024;
/// Folding stops at this many elements: what is larger is left to the lowering.
static constexpr int64_t foldElements = 1 << 20;
/// Expressions are for shapes, which are short.
static constexpr int64_t foldExpressions = 1024;

Dims Emitter::dims(llvm::ArrayRef<int64_t> sizes) {
  Dims result;
  for (int64_t size : sizes)
    result.push_back(dim(size));
  return result;
}

Dim Emitter::addSymbol(Symbol symbol) {
  symbolNames.push_back(symbol.name);
  symbols.push_back(std::move(symbol));
  return mlir::getAffineSymbolExpr(symbols.size() - 1, context);
}

Dim Emitter::simplify(Dim dim) {
  if (dim.getKind() == mlir::AffineExprKind::Mul)
    dim = productOf(dim);
  if (!dim.isPureAffine()) // products of symbols: no normal form but the sorted product
    return dim;
  return mlir::simplifyAffineExpr(dim, 0, symbols.size());
}

mlir::RankedTensorType Emitter::typeOf(Elem elem, llvm::ArrayRef<Dim> shape) {
  llvm::SmallVector<int64_t> sizes;
  for (Dim dim : shape)
    sizes.push_back(constantDim(dim).value_or(mlir::ShapedType::kDynamic));
  return mlir::RankedTensorType::get(sizes, mlirType(context, elem));
}

Tensor Emitter::constant(Elem elem, llvm::ArrayRef<int64_t> shape, std::string bytes) {
  Tensor tensor{elem, dims(shape), Constant::own(std::move(bytes)), nullptr, nullptr};
  return tensor;
}

Tensor Emitter::integers(llvm::ArrayRef<int64_t> values) {
  return constant(Elem::I64, {static_cast<int64_t>(values.size())},
                  std::string(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(int64_t)));
}

Tensor Emitter::splat(Elem elem, llvm::ArrayRef<Dim> shape, Number number) {
  std::optional<int64_t> count = constantDim(productOf(shape));
  if (!count || *count > foldElements)
    return ofValue(elem, shape, filled(elem, shape, number));
  std::string one, bytes;
  appendElement(elem, number, one);
  for (int64_t i = 0; i < *count; ++i)
    bytes += one;
  return constant(elem, *staticDims(shape), std::move(bytes));
}

Tensor Emitter::expressions(Elem elem, llvm::ArrayRef<Dim> elements, llvm::ArrayRef<Dim> shape) {
  std::string bytes;
  for (Dim element : elements) {
    std::optional<int64_t> value = constantDim(element);
    if (!value)
      break;
    appendElement(elem, converted(Elem::I64, elem, Number{0, *value}), bytes);
  }
  if (bytes.size() == elements.size() * widthOf(elem))
    return Tensor{elem, Dims(shape), Constant::own(std::move(bytes)), nullptr, nullptr};
  auto list = std::make_shared<llvm::SmallVector<Dim>>(elements.begin(), elements.end());
  return Tensor{elem, Dims(shape), nullptr, std::move(list), nullptr};
}

Tensor Emitter::ofValue(Elem elem, llvm::ArrayRef<Dim> shape, mlir::Value value) {
  return Tensor{elem, Dims(shape), nullptr, nullptr, value};
}

mlir::Value Emitter::inPrologue(llvm::function_ref<mlir::Value()> make) {
  mlir::OpBuilder::InsertionGuard guard(builder);
  if (prologueEnd)
    builder.setInsertionPointAfter(prologueEnd);
  else
    builder.setInsertionPointToStart(entry);
  mlir::Value value = make();
  if (mlir::Operation *op = value.getDefiningOp())
    prologueEnd = op;
  return value;
}

/// Whether an expression uses a symbol whose size is known only on the way.
static bool isComputed(Dim dim, llvm::ArrayRef<Emitter::Symbol> symbols) {
  bool computed = false;
  dim.walk([&](mlir::AffineExpr part) {
    if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(part))
      computed |= static_cast<bool>(symbols[symbol.getPosition()].computed);
  });
  return computed;
}

mlir::Value Emitter::sizeOf(Dim dim) {
  if (auto known = sizes.find(dim); known != sizes.end())
    return known->second;
  auto make = [&]() -> mlir::Value {
    if (std::optional<int64_t> value = constantDim(dim))
      return arith::ConstantIndexOp::create(builder, location, *value);
    if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(dim)) {
      const Symbol &source = symbols[symbol.getPosition()];
      return source.computed ? source.computed
                             : mlir::tensor::DimOp::create(builder, location, source.argument, source.axis).getResult();
    }
    auto binary = llvm::cast<mlir::AffineBinaryOpExpr>(dim);
    mlir::Value left = sizeOf(binary.getLHS()), right = sizeOf(binary.getRHS());
    switch (dim.getKind()) {
    case mlir::AffineExprKind::Add:
      return arith::AddIOp::create(builder, location, left, right);
    case mlir::AffineExprKind::Mul:
      return arith::MulIOp::create(builder, location, left, right);
    case mlir::AffineExprKind::FloorDiv:
      return arith::FloorDivSIOp::create(builder, location, left, right);
    case mlir::AffineExprKind::CeilDiv:
      return arith::CeilDivSIOp::create(builder, location, left, right);
    default: { // mod by a positive constant, of a value that may be negative
      mlir::Value quotient = arith::FloorDivSIOp::create(builder, location, left, right);
      return arith::SubIOp::create(builder, location, left, arith::MulIOp::create(builder, location, quotient, right));
    }
    }
  };
  if (isComputed(dim, symbols))
    return make();
  // Operands first: each enters the prologue on its own.
  if (auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(dim)) {
    sizeOf(binary.getLHS());
    sizeOf(binary.getRHS());
  }
  mlir::Value value = inPrologue([&] {
    mlir::Value made = make();
    return made;
  });
  sizes[dim] = value;
  return value;
}

mlir::Value Emitter::constantValue(Elem elem, llvm::ArrayRef<Dim> shape, const Constant &constant) {
  mlir::RankedTensorType type = typeOf(elem, shape);
  mlir::Value &cached = constants[{constant.bytes.data(), type}];
  if (cached && !constant.bytes.empty())
    return cached;
  mlir::TypedAttr attribute;
  if (elem == Elem::Bool) {
    llvm::SmallVector<bool> bits;
    for (char byte : constant.bytes)
      bits.push_back(byte != 0);
    attribute = mlir::DenseElementsAttr::get(type, llvm::ArrayRef<bool>(bits));
  } else if (constant.bytes.size() <= inlineBytes) {
    attribute = mlir::DenseElementsAttr::getFromRawBuffer(type, constant.bytes);
  } else {
    // The blob shares the bytes with the model: no copy of the weights.
    auto deleter = [owner = constant.owner](void *, size_t, size_t) {};
    mlir::AsmResourceBlob blob(constant.bytes, widthOf(elem), std::move(deleter), /*dataIsMutable=*/false);
    attribute = mlir::DenseResourceElementsAttr::get(type, "weights", std::move(blob));
  }
  kept.push_back(constant.owner);
  mlir::Value value =
      inPrologue([&]() -> mlir::Value { return arith::ConstantOp::create(builder, location, attribute); });
  return constants[{constant.bytes.data(), type}] = value;
}

mlir::Value Emitter::valueOf(const Tensor &tensor) {
  Tensor copy = tensor;
  return valueOf(copy);
}

mlir::Value Emitter::valueOf(Tensor &tensor) {
  if (tensor.value)
    return tensor.value;
  if (tensor.constant)
    return tensor.value = constantValue(tensor.elem, tensor.shape, *tensor.constant);
  bool computed = llvm::any_of(*tensor.elements, [&](Dim element) { return isComputed(element, symbols); });
  llvm::SmallVector<mlir::Value> elements;
  for (Dim element : *tensor.elements)
    elements.push_back(sizeOf(element));
  auto make = [&]() -> mlir::Value {
    ScalarBuilder scalars(*this, builder, location);
    llvm::SmallVector<mlir::Value> cast;
    for (mlir::Value element : elements)
      cast.push_back(scalars.materialize(scalars.cast(Scalar(scalars, Elem::Index, element), tensor.elem)));
    return mlir::tensor::FromElementsOp::create(builder, location, typeOf(tensor.elem, tensor.shape), cast);
  };
  return tensor.value = computed ? make() : inPrologue(make);
}

mlir::Value Emitter::empty(Elem elem, llvm::ArrayRef<Dim> shape) {
  llvm::SmallVector<mlir::Value> dynamic;
  for (Dim dim : shape)
    if (!constantDim(dim))
      dynamic.push_back(sizeOf(dim));
  return mlir::tensor::EmptyOp::create(builder, location, typeOf(elem, shape), dynamic);
}

llvm::Expected<Dims> Emitter::broadcast(llvm::ArrayRef<Dims> shapes) {
  Dims result;
  for (const Dims &shape : shapes)
    if (shape.size() > result.size())
      result.insert(result.begin(), shape.size() - result.size(), dim(1));
  for (const Dims &shape : shapes) {
    size_t offset = result.size() - shape.size();
    for (auto [i, size] : llvm::enumerate(shape)) {
      Dim &joint = result[offset + i];
      if (joint == size || isDim(size, 1))
        continue;
      if (!isDim(joint, 1)) {
        bool symbolic = !constantDim(joint) || !constantDim(size);
        return llvm::createStringError("shapes %s and %s do not broadcast%s", describe(result).c_str(),
                                       describe(shape).c_str(),
                                       symbolic ? " for certain: symbolic dims must be equal, or one a fixed 1 "
                                                  "(fix or rename them with --dim)"
                                                : "");
      }
      joint = size;
    }
  }
  return result;
}

/// Gathers folded scalars into a tensor.
namespace {
struct Folded {
  Elem elem;
  std::string bytes;
  llvm::SmallVector<Dim> elements;
  bool symbolic = false;

  void add(mlir::MLIRContext *context, Scalar scalar) {
    if (scalar.isExpression() && !symbolic) {
      symbolic = true;
      for (size_t at = 0; at < bytes.size(); at += widthOf(elem))
        elements.push_back(wholeDim(context, readElement(elem, bytes.data() + at)));
    }
    if (symbolic)
      elements.push_back(scalar.isExpression() ? scalar.dim : wholeDim(context, scalar.number));
    else
      appendElement(elem, scalar.number, bytes);
  }
  Dim wholeDim(mlir::MLIRContext *context, Number number) {
    if (isFloat(elem))
      fractional |= number.real != static_cast<double>(static_cast<int64_t>(number.real));
    return mlir::getAffineConstantExpr(isFloat(elem) ? static_cast<int64_t>(number.real) : number.integer, context);
  }
  bool fractional = false;
};
} // namespace

std::optional<Tensor> Emitter::foldGenerate(Elem elem, llvm::ArrayRef<Dim> shape, Generator body) {
  std::optional<Ints> sizes = staticDims(shape);
  if (!sizes)
    return std::nullopt;
  int64_t count = 1;
  for (int64_t size : *sizes)
    if (__builtin_mul_overflow(count, size, &count) || count > foldElements)
      return std::nullopt;
  Folded folded{elem, {}, {}};
  ScalarBuilder scalars(context, symbols.size());
  Ints index(sizes->size(), 0);
  llvm::SmallVector<Scalar> positions(sizes->size());
  for (int64_t i = 0; i < count; ++i) {
    for (auto [axis, at] : llvm::enumerate(index))
      positions[axis] = scalars.integer(Elem::Index, at);
    folded.add(context, body(scalars, positions));
    if (scalars.stuck || folded.fractional || (folded.symbolic && count > foldExpressions))
      return std::nullopt;
    for (int64_t axis = index.size() - 1; axis >= 0 && ++index[axis] == (*sizes)[axis]; --axis)
      index[axis] = 0;
  }
  if (folded.symbolic)
    return expressions(elem, folded.elements, shape);
  return constant(elem, *sizes, std::move(folded.bytes));
}

std::optional<Tensor> Emitter::foldPointwise(Elem elem, llvm::ArrayRef<Dim> shape, llvm::ArrayRef<Tensor> operands,
                                             Body body) {
  // Splats need no memory: any operand that is none must be known.
  for (const Tensor &operand : operands)
    if (!operand.isKnown())
      return std::nullopt;
  llvm::SmallVector<Scalar> arguments(operands.size());
  return foldGenerate(elem, shape, [&](ScalarBuilder &scalars, llvm::ArrayRef<Scalar> position) {
    for (auto [i, operand] : llvm::enumerate(operands)) {
      int64_t at = 0;
      size_t offset = position.size() - operand.shape.size();
      for (auto [axis, size] : llvm::enumerate(operand.shape))
        at = at * *constantDim(size) + (isDim(size, 1) ? 0 : position[offset + axis].number.integer);
      if (operand.constant)
        arguments[i] = Scalar(scalars, operand.elem, readElement(operand, at));
      else if (Dim element = (*operand.elements)[at]; std::optional<int64_t> value = constantDim(element))
        arguments[i] = Scalar(scalars, operand.elem, converted(Elem::I64, operand.elem, Number{0, *value}));
      else
        arguments[i] = Scalar(scalars, operand.elem, element);
    }
    return body(scalars, arguments);
  });
}

Tensor Emitter::gatherKnown(llvm::ArrayRef<Tensor> sources, llvm::ArrayRef<Dim> shape,
                            llvm::function_ref<std::pair<unsigned, int64_t>(llvm::ArrayRef<int64_t>)> source) {
  Ints sizes = *staticDims(shape);
  int64_t count = 1;
  for (int64_t size : sizes)
    count *= size;
  bool symbolic = llvm::any_of(sources, [](const Tensor &tensor) { return !tensor.constant; });
  Elem elem = sources.front().elem;
  unsigned width = widthOf(elem);
  std::string bytes(symbolic ? 0 : count * width, '\0');
  llvm::SmallVector<Dim> elements;
  Ints index(sizes.size(), 0);
  for (int64_t i = 0; i < count; ++i) {
    auto [which, at] = source(index);
    const Tensor &from = sources[which];
    if (!symbolic)
      std::memcpy(bytes.data() + i * width, from.constant->bytes.data() + at * width, width);
    else if (from.constant)
      elements.push_back(dim(converted(elem, Elem::I64, readElement(from, at)).integer));
    else
      elements.push_back((*from.elements)[at]);
    for (int64_t axis = index.size() - 1; axis >= 0 && ++index[axis] == sizes[axis]; --axis)
      index[axis] = 0;
  }
  if (symbolic)
    return expressions(elem, elements, shape);
  return constant(elem, sizes, std::move(bytes));
}
