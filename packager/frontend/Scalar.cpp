#include "packager/frontend/Scalar.h"

#include "packager/frontend/Emitter.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

#include <cmath>
#include <limits>

using namespace vmpack::frontend;
namespace arith = mlir::arith;
namespace math = mlir::math;

ScalarBuilder::ScalarBuilder(Emitter &emitter, mlir::OpBuilder &builder, mlir::Location location)
    : context(emitter.context), symbolCount(emitter.symbols.size()), emitter(&emitter), builder(&builder),
      location(location) {}

Scalar ScalarBuilder::real(Elem elem, double value) { return give(elem, Number{value, 0}); }
Scalar ScalarBuilder::integer(Elem elem, int64_t value) { return give(elem, Number{0, value}); }
Scalar ScalarBuilder::constant(Elem elem, double value) {
  return give(elem, converted(Elem::F64, isFloat(elem) ? elem : Elem::I64, Number{value, 0}));
}

Scalar ScalarBuilder::infinity(Elem elem, bool negative) {
  double value = std::numeric_limits<double>::infinity();
  return real(elem, negative ? -value : value);
}

Scalar ScalarBuilder::extreme(Elem elem, bool smallest) {
  if (isFloat(elem))
    return infinity(elem, smallest);
  if (elem == Elem::Bool)
    return integer(elem, !smallest);
  if (isUnsigned(elem))
    return integer(elem, smallest ? 0 : -1);
  unsigned unused = 64 - 8 * widthOf(elem);
  return integer(elem, smallest ? INT64_MIN >> unused : INT64_MAX >> unused);
}

Scalar ScalarBuilder::simplest(Elem elem, Dim dim) {
  if (emitter)
    dim = emitter->simplify(dim);
  else
    dim = mlir::simplifyAffineExpr(dim, 0, symbolCount);
  if (std::optional<int64_t> value = constantDim(dim))
    return give(elem, Number{static_cast<double>(*value), *value});
  return Scalar(*this, elem, dim);
}

Scalar ScalarBuilder::stick(Elem elem) {
  stuck = true;
  return give(elem, Number{});
}

/// A number that is a whole one, as a dim.
static std::optional<int64_t> wholeOf(Scalar a) {
  if (!isFloat(a.elem))
    return a.number.integer;
  if (std::trunc(a.number.real) != a.number.real || std::fabs(a.number.real) > 1e15)
    return std::nullopt;
  return static_cast<int64_t>(a.number.real);
}

bool ScalarBuilder::areExpressions(Scalar a, Scalar b) const {
  auto fits = [](Scalar x) { return x.isExpression() || (x.isNumber() && wholeOf(x)); };
  return (a.isExpression() || b.isExpression()) && fits(a) && fits(b);
}

Dim ScalarBuilder::dimOf(Scalar a) const {
  return a.isExpression() ? a.dim : mlir::getAffineConstantExpr(*wholeOf(a), context);
}

mlir::Value ScalarBuilder::materialize(Scalar scalar) {
  if (scalar.kind == Scalar::Kind::Value)
    return scalar.value;
  if (!builder) {
    stuck = true;
    return nullptr;
  }
  mlir::Type type = mlirType(context, scalar.elem);
  if (scalar.isExpression())
    return castValue(emitter->sizeOf(scalar.dim), Elem::Index, scalar.elem);
  mlir::TypedAttr attribute;
  if (isFloat(scalar.elem))
    attribute = builder->getFloatAttr(type, scalar.number.real);
  else if (scalar.elem == Elem::Index)
    attribute = builder->getIndexAttr(scalar.number.integer);
  else
    attribute = builder->getIntegerAttr(type, llvm::APInt(type.getIntOrFloatBitWidth(), scalar.number.integer,
                                                          /*isSigned=*/false, /*implicitTrunc=*/true));
  return arith::ConstantOp::create(*builder, *location, attribute);
}

template <typename FloatOp, typename IntOp, typename UnsignedOp> Scalar ScalarBuilder::emit(Scalar a, Scalar b) {
  if (!builder)
    return stick(a.elem);
  mlir::Value x = materialize(a), y = materialize(b);
  mlir::Value result;
  if (isFloat(a.elem))
    result = FloatOp::create(*builder, *location, x, y);
  else if (isUnsigned(a.elem) || a.elem == Elem::Bool)
    result = UnsignedOp::create(*builder, *location, x, y);
  else
    result = IntOp::create(*builder, *location, x, y);
  return Scalar(*this, a.elem, result);
}

template <typename FloatOp, typename IntOp> Scalar ScalarBuilder::emit(Scalar a, Scalar b) {
  return emit<FloatOp, IntOp, IntOp>(a, b);
}

static int64_t wrap(uint64_t value) { return static_cast<int64_t>(value); }

Scalar ScalarBuilder::add(Scalar a, Scalar b) {
  if (areNumbers(a, b))
    return give(a.elem, {a.number.real + b.number.real, wrap(uint64_t(a.number.integer) + uint64_t(b.number.integer))});
  if (areExpressions(a, b))
    return simplest(a.elem, dimOf(a) + dimOf(b));
  return emit<arith::AddFOp, arith::AddIOp>(a, b);
}

Scalar ScalarBuilder::subtract(Scalar a, Scalar b) {
  if (areNumbers(a, b))
    return give(a.elem, {a.number.real - b.number.real, wrap(uint64_t(a.number.integer) - uint64_t(b.number.integer))});
  if (areExpressions(a, b))
    return simplest(a.elem, dimOf(a) - dimOf(b));
  return emit<arith::SubFOp, arith::SubIOp>(a, b);
}

Scalar ScalarBuilder::multiply(Scalar a, Scalar b) {
  if (areNumbers(a, b))
    return give(a.elem, {a.number.real * b.number.real, wrap(uint64_t(a.number.integer) * uint64_t(b.number.integer))});
  if (areExpressions(a, b))
    return simplest(a.elem, frontend::productOf(context, {dimOf(a), dimOf(b)}));
  return emit<arith::MulFOp, arith::MulIOp>(a, b);
}

Scalar ScalarBuilder::divide(Scalar a, Scalar b) {
  if (areNumbers(a, b)) {
    if (isFloat(a.elem))
      return real(a.elem, a.number.real / b.number.real);
    int64_t x = a.number.integer, y = b.number.integer;
    if (y == 0)
      return stick(a.elem);
    if (isUnsigned(a.elem))
      return integer(a.elem, wrap(uint64_t(x) / uint64_t(y)));
    return integer(a.elem, y == -1 ? wrap(-uint64_t(x)) : x / y);
  }
  if (areExpressions(a, b)) {
    if (isDim(dimOf(b), 0))
      return stick(a.elem);
    if (std::optional<Dim> quotient = quotientOf(context, dimOf(a), dimOf(b)); quotient && !isFloat(a.elem))
      return simplest(a.elem, *quotient);
    std::optional<int64_t> divisor = constantDim(dimOf(b));
    if (!isFloat(a.elem) && divisor && *divisor > 0)
      return simplest(a.elem, dimOf(a).floorDiv(*divisor));
  }
  return emit<arith::DivFOp, arith::DivSIOp, arith::DivUIOp>(a, b);
}

Scalar ScalarBuilder::floorDivide(Scalar a, Scalar b) {
  if (isFloat(a.elem))
    return function(Function::Floor, divide(a, b));
  if (!areNumbers(a, b) && areExpressions(a, b))
    return divide(a, b);
  // (a - (a mod b)) / b with Python's mod is exact.
  return divide(subtract(a, modulo(a, b)), b);
}

Scalar ScalarBuilder::remainder(Scalar a, Scalar b) {
  if (areNumbers(a, b)) {
    if (isFloat(a.elem))
      return real(a.elem, std::fmod(a.number.real, b.number.real));
    int64_t x = a.number.integer, y = b.number.integer;
    if (y == 0)
      return stick(a.elem);
    if (isUnsigned(a.elem))
      return integer(a.elem, wrap(uint64_t(x) % uint64_t(y)));
    return integer(a.elem, y == -1 ? 0 : x % y);
  }
  if (areExpressions(a, b)) {
    std::optional<int64_t> divisor = constantDim(dimOf(b));
    if (!isFloat(a.elem) && divisor && *divisor > 0)
      return simplest(a.elem, dimOf(a) % *divisor);
  }
  return emit<arith::RemFOp, arith::RemSIOp, arith::RemUIOp>(a, b);
}

Scalar ScalarBuilder::modulo(Scalar a, Scalar b) {
  Scalar rest = remainder(a, b);
  if (isUnsigned(a.elem) || rest.isExpression())
    return rest;
  Scalar zero = constant(a.elem, 0);
  Scalar differs = bitXor(compare(Compare::Less, rest, zero), compare(Compare::Less, b, zero));
  return select(bitAnd(compare(Compare::NotEqual, rest, zero), differs), add(rest, b), rest);
}

Scalar ScalarBuilder::maximum(Scalar a, Scalar b) {
  if (areNumbers(a, b) && isFloat(a.elem) && (std::isnan(a.number.real) || std::isnan(b.number.real)))
    return real(a.elem, NAN);
  if (a.kind != Scalar::Kind::Value && b.kind != Scalar::Kind::Value)
    return select(compare(Compare::Greater, a, b), a, b);
  return emit<arith::MaximumFOp, arith::MaxSIOp, arith::MaxUIOp>(a, b);
}

Scalar ScalarBuilder::minimum(Scalar a, Scalar b) {
  if (areNumbers(a, b) && isFloat(a.elem) && (std::isnan(a.number.real) || std::isnan(b.number.real)))
    return real(a.elem, NAN);
  if (a.kind != Scalar::Kind::Value && b.kind != Scalar::Kind::Value)
    return select(compare(Compare::Less, a, b), a, b);
  return emit<arith::MinimumFOp, arith::MinSIOp, arith::MinUIOp>(a, b);
}

Scalar ScalarBuilder::power(Scalar base, Scalar exponent) {
  if (areNumbers(base, exponent))
    return real(base.elem, std::pow(base.number.real, exponent.number.real));
  if (exponent.isNumber()) { // squares and the like are common, and exact
    double y = exponent.number.real;
    if (y == 1)
      return base;
    if (y == 2)
      return multiply(base, base);
    if (y == 3)
      return multiply(multiply(base, base), base);
    if (y == 0.5)
      return function(Function::Sqrt, base);
  }
  return emit<math::PowFOp, math::IPowIOp>(base, exponent);
}

Scalar ScalarBuilder::negate(Scalar a) {
  if (a.kind == Scalar::Kind::Value && isFloat(a.elem))
    return Scalar(*this, a.elem, arith::NegFOp::create(*builder, *location, a.value).getResult());
  if (a.isNumber() && isFloat(a.elem))
    return real(a.elem, -a.number.real);
  return subtract(constant(a.elem, 0), a);
}

Scalar ScalarBuilder::absolute(Scalar a) {
  if (isUnsigned(a.elem))
    return a;
  if (a.isNumber())
    return give(a.elem, {std::fabs(a.number.real),
                         a.number.integer < 0 ? wrap(-uint64_t(a.number.integer)) : a.number.integer});
  if (a.isExpression() || !builder)
    return select(compare(Compare::Less, a, constant(a.elem, 0)), negate(a), a);
  mlir::Value result = isFloat(a.elem) ? math::AbsFOp::create(*builder, *location, a.value).getResult()
                                       : math::AbsIOp::create(*builder, *location, a.value).getResult();
  return Scalar(*this, a.elem, result);
}

Scalar ScalarBuilder::sign(Scalar a) {
  Scalar zero = constant(a.elem, 0), one = constant(a.elem, 1);
  if (isUnsigned(a.elem))
    return select(compare(Compare::Equal, a, zero), zero, one);
  return select(compare(Compare::Greater, a, zero), one,
                select(compare(Compare::Less, a, zero), constant(a.elem, -1), a));
}

Scalar ScalarBuilder::function(Function function, Scalar a) {
  bool rounds = function == Function::Floor || function == Function::Ceil || function == Function::RoundEven;
  if (rounds && (a.isExpression() || !isFloat(a.elem)))
    return a; // whole already
  if (a.isNumber()) {
    double x = a.number.real, y = 0;
    switch (function) {
#define X(name, host)                                                                                                  \
  case Function::name:                                                                                                 \
    y = std::host(x);                                                                                                  \
    break;
      VMPACK_FLOAT_FUNCTIONS(X)
#undef X
    }
    return real(a.elem, y);
  }
  if (!builder)
    return stick(a.elem);
  mlir::Value x = materialize(a), y;
  switch (function) {
#define X(name, host)                                                                                                  \
  case Function::name:                                                                                                 \
    y = math::name##Op::create(*builder, *location, x).getResult();                                                    \
    break;
    VMPACK_FLOAT_FUNCTIONS(X)
#undef X
  }
  return Scalar(*this, a.elem, y);
}

Scalar ScalarBuilder::bitAnd(Scalar a, Scalar b) {
  if (areNumbers(a, b))
    return integer(a.elem, a.number.integer & b.number.integer);
  if (a.elem == Elem::Bool && (a.isNumber() || b.isNumber())) {
    Scalar number = a.isNumber() ? a : b, other = a.isNumber() ? b : a;
    return number.number.integer ? other : number;
  }
  return emit<arith::AndIOp, arith::AndIOp>(a, b);
}

Scalar ScalarBuilder::bitOr(Scalar a, Scalar b) {
  if (areNumbers(a, b))
    return integer(a.elem, a.number.integer | b.number.integer);
  if (a.elem == Elem::Bool && (a.isNumber() || b.isNumber())) {
    Scalar number = a.isNumber() ? a : b, other = a.isNumber() ? b : a;
    return number.number.integer ? number : other;
  }
  return emit<arith::OrIOp, arith::OrIOp>(a, b);
}

Scalar ScalarBuilder::bitXor(Scalar a, Scalar b) {
  if (areNumbers(a, b))
    return integer(a.elem, a.number.integer ^ b.number.integer);
  return emit<arith::XOrIOp, arith::XOrIOp>(a, b);
}

Scalar ScalarBuilder::bitNot(Scalar a) { return bitXor(a, integer(a.elem, a.elem == Elem::Bool ? 1 : -1)); }

Scalar ScalarBuilder::shift(Scalar a, Scalar b, bool left) {
  unsigned width = 8 * widthOf(a.elem);
  if (areNumbers(a, b)) {
    uint64_t count = b.number.integer, bits = a.number.integer;
    return integer(a.elem, count >= width ? 0 : wrap(left ? bits << count : bits >> count));
  }
  Scalar fits = compare(Compare::Less, b, integer(b.elem, width));
  Scalar shifted = left ? emit<arith::ShLIOp, arith::ShLIOp>(a, b) : emit<arith::ShRUIOp, arith::ShRUIOp>(a, b);
  return select(fits, shifted, integer(a.elem, 0));
}

Scalar ScalarBuilder::isNan(Scalar a) {
  if (a.isNumber())
    return integer(Elem::Bool, std::isnan(a.number.real));
  if (!builder)
    return stick(Elem::Bool);
  mlir::Value x = materialize(a);
  return Scalar(*this, Elem::Bool,
                arith::CmpFOp::create(*builder, *location, arith::CmpFPredicate::UNO, x, x).getResult());
}

mlir::Value ScalarBuilder::castValue(mlir::Value value, Elem from, Elem to) {
  mlir::OpBuilder &b = *builder;
  mlir::Location loc = *location;
  mlir::Type source = mlirType(context, from), target = mlirType(context, to);
  if (source == target)
    return value;
  if (from == Elem::Index)
    return to == Elem::I64 ? arith::IndexCastOp::create(b, loc, target, value).getResult()
                           : castValue(arith::IndexCastOp::create(b, loc, b.getI64Type(), value), Elem::I64, to);
  if (to == Elem::Index)
    return arith::IndexCastOp::create(b, loc, target, castValue(value, from, Elem::I64));
  if (to == Elem::Bool) {
    mlir::Value zero = arith::ConstantOp::create(b, loc, b.getZeroAttr(source));
    if (isFloat(from))
      return arith::CmpFOp::create(b, loc, arith::CmpFPredicate::UNE, value, zero);
    return arith::CmpIOp::create(b, loc, arith::CmpIPredicate::ne, value, zero);
  }
  bool natural = isUnsigned(from) || from == Elem::Bool;
  if (isFloat(from) && isFloat(to)) {
    if (widthOf(from) == widthOf(to)) // float16 and bfloat16
      return castValue(castValue(value, from, Elem::F32), Elem::F32, to);
    return widthOf(to) > widthOf(from) ? arith::ExtFOp::create(b, loc, target, value).getResult()
                                       : arith::TruncFOp::create(b, loc, target, value).getResult();
  }
  if (isFloat(from))
    return isUnsigned(to) ? arith::FPToUIOp::create(b, loc, target, value).getResult()
                          : arith::FPToSIOp::create(b, loc, target, value).getResult();
  if (isFloat(to))
    return natural ? arith::UIToFPOp::create(b, loc, target, value).getResult()
                   : arith::SIToFPOp::create(b, loc, target, value).getResult();
  if (target.getIntOrFloatBitWidth() < source.getIntOrFloatBitWidth())
    return arith::TruncIOp::create(b, loc, target, value);
  return natural ? arith::ExtUIOp::create(b, loc, target, value).getResult()
                 : arith::ExtSIOp::create(b, loc, target, value).getResult();
}

Scalar ScalarBuilder::cast(Scalar a, Elem to) {
  if (a.elem == to)
    return a;
  if (a.isNumber())
    return Scalar(*this, to, converted(a.elem, to, a.number));
  if (a.isExpression() && to != Elem::Bool)
    return Scalar(*this, to, a.dim);
  if (!builder)
    return stick(to);
  return Scalar(*this, to, castValue(materialize(a), a.elem, to));
}

Scalar ScalarBuilder::sigmoid(Scalar a) { return 1.0 / (1.0 + function(Function::Exp, negate(a))); }

Scalar ScalarBuilder::load(const Tensor &tensor, llvm::ArrayRef<Scalar> indices) {
  if (std::optional<Number> splat = splatOf(tensor))
    return Scalar(*this, tensor.elem, *splat);
  std::optional<Ints> shape = staticDims(tensor.shape);
  if (tensor.isKnown() && shape && llvm::all_of(indices, [](Scalar index) { return index.isNumber(); })) {
    int64_t position = 0;
    bool inside = true;
    for (auto [size, index] : llvm::zip_equal(*shape, indices)) {
      inside &= index.number.integer >= 0 && index.number.integer < size;
      position = position * size + index.number.integer;
    }
    if (!inside)
      return stick(tensor.elem);
    if (tensor.constant)
      return Scalar(*this, tensor.elem, readElement(tensor, position));
    return simplest(tensor.elem, (*tensor.elements)[position]);
  }
  if (!builder)
    return stick(tensor.elem);
  mlir::Value source = emitter->valueOf(tensor);
  llvm::SmallVector<mlir::Value> positions;
  for (Scalar index : indices)
    positions.push_back(materialize(cast(index, Elem::Index)));
  return Scalar(*this, tensor.elem,
                mlir::tensor::ExtractOp::create(*builder, *location, source, positions).getResult());
}
