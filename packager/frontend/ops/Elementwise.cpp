// Arithmetic, comparison, logic and casts, element by element.
#include "packager/frontend/Node.h"

#include <onnx/onnx_pb.h>

#include <cmath>
#include <limits>

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;
using Binary = Scalar (ScalarBuilder::*)(Scalar, Scalar);

/// Before opset 7 the second operand was aligned by `axis`, and broadcast only when told.
static void alignLegacy(Node &n) {
  int64_t axis = n.integer("axis", -1);
  if (n.opset >= 7 || axis < 0 || axis + n.input(1).rank() > n.input(0).rank())
    return;
  Dims shape = n.input(1).shape;
  shape.resize(n.input(0).rank() - axis, n.emit.dim(1));
  n.inputs[1] = n.emit.reshape(n.input(1), shape);
}

static llvm::Error broadcastBinary(Node &n, Elem elem, Body body) {
  VMPACK_CHECK(n.checkSameElem());
  alignLegacy(n);
  auto result = n.emit.pointwise(elem, n.inputs, body);
  if (!result)
    return n.invalid(llvm::toString(result.takeError()));
  n.output(*result);
  return llvm::Error::success();
}

template <Binary operation> static llvm::Error binary(Node &n) {
  return broadcastBinary(n, n.input(0).elem, [](ScalarBuilder &s, Scalars x) { return (s.*operation)(x[0], x[1]); });
}

template <Compare predicate> static llvm::Error comparison(Node &n) {
  return broadcastBinary(n, Elem::Bool, [](ScalarBuilder &s, Scalars x) { return s.compare(predicate, x[0], x[1]); });
}

static llvm::Error unary(Node &n, Elem elem, Body body) {
  n.output(n.emit.pointwiseTo(elem, n.input(0).shape, n.input(0), body));
  return llvm::Error::success();
}

template <Function f> static llvm::Error function(Node &n) {
  return unary(n, n.input(0).elem, [](ScalarBuilder &s, Scalars x) { return s.function(f, x[0]); });
}

template <Scalar (ScalarBuilder::*operation)(Scalar)> static llvm::Error unaryOf(Node &n) {
  return unary(n, n.input(0).elem, [](ScalarBuilder &s, Scalars x) { return (s.*operation)(x[0]); });
}

/// Max, Min, Sum: any number of operands in one element-wise op.
template <Binary operation> static llvm::Error variadic(Node &n) {
  return broadcastBinary(n, n.input(0).elem, [](ScalarBuilder &s, Scalars x) {
    Scalar result = x[0];
    for (Scalar next : x.drop_front())
      result = (s.*operation)(result, next);
    return result;
  });
}

static llvm::Error mean(Node &n) {
  return broadcastBinary(n, n.input(0).elem, [](ScalarBuilder &, Scalars x) {
    Scalar result = x[0];
    for (Scalar next : x.drop_front())
      result = result + next;
    return result / static_cast<double>(x.size());
  });
}

/// Base and exponent may differ in type; the result has the base's. Integers go through double, and are rounded when
/// the exponent is whole, so that the power function need not be exact.
static llvm::Error power(Node &n) {
  Elem base = n.input(0).elem, exponent = n.input(1).elem;
  if (n.input(1).elem == Elem::Bool)
    return n.unsupported("the exponent is bool");
  alignLegacy(n);
  auto result = n.emit.pointwise(base, n.inputs, [&](ScalarBuilder &s, Scalars x) {
    if (isFloat(base))
      return s.power(x[0], s.cast(x[1], base));
    Scalar y = s.power(s.cast(x[0], Elem::F64), s.cast(x[1], Elem::F64));
    return s.cast(isFloat(exponent) ? y : s.function(Function::RoundEven, y), base);
  });
  if (!result)
    return n.invalid(llvm::toString(result.takeError()));
  n.output(*result);
  return llvm::Error::success();
}

static llvm::Error mod(Node &n) {
  bool truncates = n.integer("fmod", 0);
  if (isFloat(n.input(0).elem) && !truncates)
    return n.invalid("attribute 'fmod' must be 1 for floats");
  return truncates ? binary<&ScalarBuilder::remainder>(n) : binary<&ScalarBuilder::modulo>(n);
}

static llvm::Error bitShift(Node &n) {
  std::string direction = n.string("direction", "");
  if (direction != "LEFT" && direction != "RIGHT")
    return n.invalid("attribute 'direction' is '" + direction + "' when it should be LEFT or RIGHT");
  return broadcastBinary(n, n.input(0).elem,
                         [&](ScalarBuilder &s, Scalars x) { return s.shift(x[0], x[1], direction == "LEFT"); });
}

static llvm::Error reciprocal(Node &n) {
  return unary(n, n.input(0).elem, [](ScalarBuilder &, Scalars x) { return 1.0 / x[0]; });
}

static llvm::Error isNan(Node &n) {
  return unary(n, Elem::Bool, [](ScalarBuilder &s, Scalars x) { return s.isNan(x[0]); });
}

static llvm::Error isInf(Node &n) {
  bool positive = n.integer("detect_positive", 1), negative = n.integer("detect_negative", 1);
  return unary(n, Elem::Bool, [&](ScalarBuilder &s, Scalars x) {
    Scalar no = s.integer(Elem::Bool, 0);
    Scalar above = positive ? s.compare(Compare::Equal, x[0], s.infinity(x[0].elem, false)) : no;
    Scalar below = negative ? s.compare(Compare::Equal, x[0], s.infinity(x[0].elem, true)) : no;
    return s.bitOr(above, below);
  });
}

static llvm::Error where(Node &n) {
  if (n.input(0).elem != Elem::Bool)
    return n.invalid("the condition is no bool");
  if (n.input(1).elem != n.input(2).elem)
    return n.invalid("the two choices have different types");
  auto result = n.emit.pointwise(n.input(1).elem, n.inputs,
                                 [](ScalarBuilder &s, Scalars x) { return s.select(x[0], x[1], x[2]); });
  if (!result)
    return n.invalid(llvm::toString(result.takeError()));
  n.output(*result);
  return llvm::Error::success();
}

/// Bounds are attributes (opset 6) or optional inputs (11).
static llvm::Error clip(Node &n) {
  const Tensor &x = n.input(0);
  llvm::SmallVector<Tensor> operands{x};
  bool hasMinimum = n.hasInput(1) || n.hasAttribute("min"), hasMaximum = n.hasInput(2) || n.hasAttribute("max");
  if (hasMinimum)
    operands.push_back(n.hasInput(1) ? n.input(1) : n.emit.real(x.elem, n.real("min", 0)));
  if (hasMaximum)
    operands.push_back(n.hasInput(2) ? n.input(2) : n.emit.real(x.elem, n.real("max", 0)));
  for (Tensor &bound : llvm::drop_begin(operands)) {
    if (bound.elem != x.elem || !isDim(n.emit.productOf(bound.shape), 1))
      return n.invalid("a bound is no scalar of the input's type");
    bound = n.emit.reshape(bound, {});
  }
  n.output(n.emit.pointwiseTo(x.elem, x.shape, operands, [&](ScalarBuilder &s, Scalars v) {
    Scalar y = hasMinimum ? s.maximum(v[0], v[1]) : v[0];
    return hasMaximum ? s.minimum(y, v.back()) : y;
  }));
  return llvm::Error::success();
}

static llvm::Error castTo(Node &n, int type) {
  Elem to = elemOf(type);
  if (to == Elem::None || to == Elem::String)
    return n.unsupported("casting to element type " + llvm::Twine(type) + " is not supported");
  n.output(n.emit.cast(n.input(0), to));
  return llvm::Error::success();
}

static llvm::Error cast(Node &n) {
  if (n.opset < 6) // the type was a name
    return n.unsupported("Cast before opset 6 is not supported");
  return castTo(n, static_cast<int>(n.integer("to", 0)));
}
static llvm::Error castLike(Node &n) { return castTo(n, static_cast<int>(n.input(1).elem)); }

llvm::ArrayRef<Op> vmpack::frontend::elementwiseOps() {
  using SB = ScalarBuilder;
  static const Op ops[] = {
      {"Add", 1, 2, 2, Types::Numeric, binary<&SB::add>},
      {"Sub", 1, 2, 2, Types::Numeric, binary<&SB::subtract>},
      {"Mul", 1, 2, 2, Types::Numeric, binary<&SB::multiply>},
      {"Div", 1, 2, 2, Types::Numeric, binary<&SB::divide>},
      {"Mod", 10, 2, 2, Types::Numeric, mod},
      {"Pow", 1, 2, 2, Types::Numeric, power},
      {"Max", 1, 1, -1, Types::Numeric, variadic<&SB::maximum>},
      {"Min", 1, 1, -1, Types::Numeric, variadic<&SB::minimum>},
      {"Sum", 1, 1, -1, Types::Numeric, variadic<&SB::add>},
      {"Mean", 1, 1, -1, Types::Float, mean},
      {"Equal", 1, 2, 2, Types::All, comparison<Compare::Equal>},
      {"Less", 1, 2, 2, Types::Numeric, comparison<Compare::Less>},
      {"LessOrEqual", 12, 2, 2, Types::Numeric, comparison<Compare::LessEqual>},
      {"Greater", 1, 2, 2, Types::Numeric, comparison<Compare::Greater>},
      {"GreaterOrEqual", 12, 2, 2, Types::Numeric, comparison<Compare::GreaterEqual>},
      {"And", 1, 2, 2, Types::Bool, binary<&SB::bitAnd>},
      {"Or", 1, 2, 2, Types::Bool, binary<&SB::bitOr>},
      {"Xor", 1, 2, 2, Types::Bool, binary<&SB::bitXor>},
      {"Not", 1, 1, 1, Types::Bool, unaryOf<&SB::bitNot>},
      {"BitwiseAnd", 18, 2, 2, Types::Integer, binary<&SB::bitAnd>},
      {"BitwiseOr", 18, 2, 2, Types::Integer, binary<&SB::bitOr>},
      {"BitwiseXor", 18, 2, 2, Types::Integer, binary<&SB::bitXor>},
      {"BitwiseNot", 18, 1, 1, Types::Integer, unaryOf<&SB::bitNot>},
      {"BitShift", 11, 2, 2, Types::Integer, bitShift},
      {"Neg", 1, 1, 1, Types::Numeric, unaryOf<&SB::negate>},
      {"Abs", 1, 1, 1, Types::Numeric, unaryOf<&SB::absolute>},
      {"Sign", 9, 1, 1, Types::Numeric, unaryOf<&SB::sign>},
      {"Reciprocal", 1, 1, 1, Types::Float, reciprocal},
      {"Exp", 1, 1, 1, Types::Float, function<Function::Exp>},
      {"Log", 1, 1, 1, Types::Float, function<Function::Log>},
      {"Sqrt", 1, 1, 1, Types::Float, function<Function::Sqrt>},
      {"Tanh", 1, 1, 1, Types::Float, function<Function::Tanh>},
      {"Erf", 9, 1, 1, Types::Float, function<Function::Erf>},
      {"Sin", 7, 1, 1, Types::Float, function<Function::Sin>},
      {"Cos", 7, 1, 1, Types::Float, function<Function::Cos>},
      {"Tan", 7, 1, 1, Types::Float, function<Function::Tan>},
      {"Asin", 7, 1, 1, Types::Float, function<Function::Asin>},
      {"Acos", 7, 1, 1, Types::Float, function<Function::Acos>},
      {"Atan", 7, 1, 1, Types::Float, function<Function::Atan>},
      {"Sinh", 9, 1, 1, Types::Float, function<Function::Sinh>},
      {"Cosh", 9, 1, 1, Types::Float, function<Function::Cosh>},
      {"Asinh", 9, 1, 1, Types::Float, function<Function::Asinh>},
      {"Acosh", 9, 1, 1, Types::Float, function<Function::Acosh>},
      {"Atanh", 9, 1, 1, Types::Float, function<Function::Atanh>},
      {"Floor", 1, 1, 1, Types::Float, function<Function::Floor>},
      {"Ceil", 1, 1, 1, Types::Float, function<Function::Ceil>},
      {"Round", 11, 1, 1, Types::Float, function<Function::RoundEven>},
      {"IsNaN", 9, 1, 1, Types::Float, isNan},
      {"IsInf", 10, 1, 1, Types::Float, isInf},
      {"Where", 9, 3, 3, Types::Bool, where},
      {"Clip", 1, 1, 3, Types::Numeric, clip},
      {"Cast", 1, 1, 1, Types::All, cast, /*widens=*/false},
      {"CastLike", 15, 2, 2, Types::All, castLike, /*widens=*/false},
  };
  return ops;
}
