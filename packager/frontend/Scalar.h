//===- Scalar.h - element-wise code with three readings -------------------------------------------------===//
//
// An op's element-wise body is written once, as a function on Scalars. The same function
//   - builds IR inside a linalg.generic           (operands are values)
//   - folds constants                             (operands are numbers)
//   - computes shapes                             (operands are expressions of the symbolic dims)
// An operation that a reading cannot do (exp of a dim, division by the number 0) marks the builder `stuck`; the caller
// then takes the first reading instead.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_FRONTEND_SCALAR_H
#define VMPACK_FRONTEND_SCALAR_H

#include "packager/frontend/Tensor.h"

#include "mlir/IR/Builders.h"

namespace vmpack::frontend {

class Emitter;
class ScalarBuilder;

class Scalar {
public:
  enum class Kind : uint8_t { Value, Number, Expression };

  Scalar() = default;
  Scalar(ScalarBuilder &builder, Elem elem, mlir::Value value)
      : builder(&builder), elem(elem), kind(Kind::Value), value(value) {}
  Scalar(ScalarBuilder &builder, Elem elem, Number number)
      : builder(&builder), elem(elem), kind(Kind::Number), number(number) {}
  Scalar(ScalarBuilder &builder, Elem elem, Dim dim)
      : builder(&builder), elem(elem), kind(Kind::Expression), dim(dim) {}

  ScalarBuilder *builder = nullptr;
  Elem elem = Elem::None;
  Kind kind = Kind::Number;
  mlir::Value value;
  Number number;
  Dim dim;

  bool isNumber() const { return kind == Kind::Number; }
  bool isExpression() const { return kind == Kind::Expression; }
};

enum class Compare { Equal, NotEqual, Less, LessEqual, Greater, GreaterEqual };

// clang-format off: it never settles on a layout of this table.
/// The functions of one float argument: name and what computes them at compile time.
#define VMPACK_FLOAT_FUNCTIONS(X) \
  X(Exp, exp) \
  X(Log, log) \
  X(Log1p, log1p) \
  X(Sqrt, sqrt) \
  X(Tanh, tanh) \
  X(Erf, erf) \
  X(Sin, sin) \
  X(Cos, cos) \
  X(Tan, tan) \
  X(Asin, asin) \
  X(Acos, acos) \
  X(Atan, atan) \
  X(Sinh, sinh) \
  X(Cosh, cosh) \
  X(Asinh, asinh) \
  X(Acosh, acosh) \
  X(Atanh, atanh) \
  X(Floor, floor) \
  X(Ceil, ceil) \
  X(RoundEven, nearbyint)
// clang-format on
enum class Function {
#define X(name, host) name,
  VMPACK_FLOAT_FUNCTIONS(X)
#undef X
};

class ScalarBuilder {
public:
  /// Without an `emitter` nothing can be emitted: only numbers and expressions are handled.
  ScalarBuilder(mlir::MLIRContext *context, unsigned symbolCount) : context(context), symbolCount(symbolCount) {}
  ScalarBuilder(Emitter &emitter, mlir::OpBuilder &builder, mlir::Location location);

  /// Set when an operation could not be done on what it was given.
  bool stuck = false;

  Scalar real(Elem elem, double value);
  Scalar integer(Elem elem, int64_t value);
  /// `value` as an element of any type.
  Scalar constant(Elem elem, double value);
  Scalar position(Dim dim) { return simplest(Elem::Index, dim); }
  Scalar infinity(Elem elem, bool negative);
  /// The smallest or largest value that `elem` can hold (infinities for floats).
  Scalar extreme(Elem elem, bool smallest);

  Scalar add(Scalar a, Scalar b);
  Scalar subtract(Scalar a, Scalar b);
  Scalar multiply(Scalar a, Scalar b);
  /// Integers truncate towards zero.
  Scalar divide(Scalar a, Scalar b);
  /// C's remainder (fmod): the sign of the dividend.
  Scalar remainder(Scalar a, Scalar b);
  /// Python's remainder: the sign of the divisor.
  Scalar modulo(Scalar a, Scalar b);
  /// Floors, for integers.
  Scalar floorDivide(Scalar a, Scalar b);
  /// NaN wins.
  Scalar maximum(Scalar a, Scalar b);
  Scalar minimum(Scalar a, Scalar b);
  Scalar power(Scalar base, Scalar exponent);
  Scalar negate(Scalar a);
  Scalar absolute(Scalar a);
  /// -1, 0 or 1; NaN stays.
  Scalar sign(Scalar a);
  Scalar function(Function function, Scalar a);
  Scalar compare(Compare predicate, Scalar a, Scalar b);
  Scalar select(Scalar condition, Scalar a, Scalar b);
  Scalar bitAnd(Scalar a, Scalar b);
  Scalar bitOr(Scalar a, Scalar b);
  Scalar bitXor(Scalar a, Scalar b);
  Scalar bitNot(Scalar a);
  /// A shift by the width or more gives 0.
  Scalar shift(Scalar a, Scalar b, bool left);
  Scalar isNan(Scalar a);
  /// ONNX's Cast.
  Scalar cast(Scalar a, Elem to);
  Scalar sigmoid(Scalar a);

  /// The element of `tensor` at the index scalars.
  Scalar load(const Tensor &tensor, llvm::ArrayRef<Scalar> indices);
  /// The IR of a scalar, made here when need be.
  mlir::Value materialize(Scalar scalar);

private:
  Scalar simplest(Elem elem, Dim dim);
  Scalar give(Elem elem, Number number) { return Scalar(*this, elem, rounded(elem, number)); }
  Scalar stick(Elem elem);
  bool areNumbers(Scalar a, Scalar b) const { return a.isNumber() && b.isNumber(); }
  /// Whether both are dims or numbers, and one is a dim.
  bool areExpressions(Scalar a, Scalar b) const;
  Dim dimOf(Scalar a) const;
  template <typename FloatOp, typename IntOp> Scalar emit(Scalar a, Scalar b);
  template <typename FloatOp, typename IntOp, typename UnsignedOp> Scalar emit(Scalar a, Scalar b);
  mlir::Value castValue(mlir::Value value, Elem from, Elem to);

  mlir::MLIRContext *context;
  unsigned symbolCount;
  Emitter *emitter = nullptr;
  mlir::OpBuilder *builder = nullptr;
  std::optional<mlir::Location> location;
};

inline Scalar operator+(Scalar a, Scalar b) { return a.builder->add(a, b); }
inline Scalar operator-(Scalar a, Scalar b) { return a.builder->subtract(a, b); }
inline Scalar operator*(Scalar a, Scalar b) { return a.builder->multiply(a, b); }
inline Scalar operator/(Scalar a, Scalar b) { return a.builder->divide(a, b); }
inline Scalar operator+(Scalar a, double b) { return a + a.builder->constant(a.elem, b); }
inline Scalar operator-(Scalar a, double b) { return a - a.builder->constant(a.elem, b); }
inline Scalar operator*(Scalar a, double b) { return a * a.builder->constant(a.elem, b); }
inline Scalar operator/(Scalar a, double b) { return a / a.builder->constant(a.elem, b); }
inline Scalar operator+(double a, Scalar b) { return b.builder->constant(b.elem, a) + b; }
inline Scalar operator-(double a, Scalar b) { return b.builder->constant(b.elem, a) - b; }
inline Scalar operator*(double a, Scalar b) { return b.builder->constant(b.elem, a) * b; }
inline Scalar operator/(double a, Scalar b) { return b.builder->constant(b.elem, a) / b; }
inline Scalar operator<(Scalar a, Scalar b) { return a.builder->compare(Compare::Less, a, b); }
inline Scalar operator<=(Scalar a, Scalar b) { return a.builder->compare(Compare::LessEqual, a, b); }
inline Scalar operator>(Scalar a, Scalar b) { return a.builder->compare(Compare::Greater, a, b); }
inline Scalar operator>=(Scalar a, Scalar b) { return a.builder->compare(Compare::GreaterEqual, a, b); }
inline Scalar operator==(Scalar a, Scalar b) { return a.builder->compare(Compare::Equal, a, b); }
inline Scalar operator&&(Scalar a, Scalar b) { return a.builder->bitAnd(a, b); }
inline Scalar operator||(Scalar a, Scalar b) { return a.builder->bitOr(a, b); }
inline Scalar operator>(Scalar a, double b) { return a > a.builder->constant(a.elem, b); }
inline Scalar operator>=(Scalar a, double b) { return a >= a.builder->constant(a.elem, b); }
inline Scalar operator<(Scalar a, double b) { return a < a.builder->constant(a.elem, b); }
inline Scalar operator<=(Scalar a, double b) { return a <= a.builder->constant(a.elem, b); }
inline Scalar operator==(Scalar a, double b) { return a == a.builder->constant(a.elem, b); }

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_SCALAR_H
