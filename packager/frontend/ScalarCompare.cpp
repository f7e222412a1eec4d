// Comparisons, which sizes can often decide without knowing the symbols: a size is never negative.
#include "packager/frontend/Scalar.h"

#include "mlir/Dialect/Arith/IR/Arith.h"

using namespace vmpack::frontend;
namespace arith = mlir::arith;

/// A bound from below, given that symbols are sizes.
static std::optional<int64_t> lowerBound(Dim dim) {
  if (std::optional<int64_t> value = constantDim(dim))
    return value;
  if (llvm::isa<mlir::AffineSymbolExpr>(dim))
    return 0;
  auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(dim);
  if (!binary)
    return std::nullopt;
  std::optional<int64_t> left = lowerBound(binary.getLHS()), right = lowerBound(binary.getRHS());
  int64_t result;
  if (dim.getKind() == mlir::AffineExprKind::Mod)
    return 0;
  if (!left || !right)
    return std::nullopt;
  if (dim.getKind() == mlir::AffineExprKind::Add)
    return __builtin_add_overflow(*left, *right, &result) ? std::nullopt : std::optional(result);
  if (*left < 0 || *right < 0)
    return std::nullopt;
  return 0;
}

static std::optional<bool> decide(Compare predicate, Dim a, Dim b, unsigned symbolCount) {
  Dim difference = mlir::simplifyAffineExpr(a - b, 0, symbolCount);
  int order; // of a to b
  if (std::optional<int64_t> value = constantDim(difference))
    order = *value < 0 ? -1 : *value > 0;
  else if (lowerBound(difference).value_or(0) > 0)
    order = 1;
  else if (lowerBound(mlir::simplifyAffineExpr(b - a, 0, symbolCount)).value_or(0) > 0)
    order = -1;
  else
    return std::nullopt;
  switch (predicate) {
  case Compare::Equal:
    return order == 0;
  case Compare::NotEqual:
    return order != 0;
  case Compare::Less:
    return order < 0;
  case Compare::LessEqual:
    return order <= 0;
  case Compare::Greater:
    return order > 0;
  case Compare::GreaterEqual:
    return order >= 0;
  }
  return std::nullopt;
}

template <typename T> static bool compareNumbers(Compare predicate, T a, T b) {
  switch (predicate) {
  case Compare::Equal:
    return a == b;
  case Compare::NotEqual:
    return a != b;
  case Compare::Less:
    return a < b;
  case Compare::LessEqual:
    return a <= b;
  case Compare::Greater:
    return a > b;
  case Compare::GreaterEqual:
    return a >= b;
  }
  return false;
}

Scalar ScalarBuilder::compare(Compare predicate, Scalar a, Scalar b) {
  bool natural = isUnsigned(a.elem) || a.elem == Elem::Bool;
  if (areNumbers(a, b)) {
    bool holds = isFloat(a.elem) ? compareNumbers(predicate, a.number.real, b.number.real)
                 : natural       ? compareNumbers(predicate, uint64_t(a.number.integer), uint64_t(b.number.integer))
                                 : compareNumbers(predicate, a.number.integer, b.number.integer);
    return integer(Elem::Bool, holds);
  }
  if (areExpressions(a, b))
    if (std::optional<bool> holds = decide(predicate, dimOf(a), dimOf(b), symbolCount))
      return integer(Elem::Bool, *holds);
  if (!builder)
    return stick(Elem::Bool);
  static constexpr arith::CmpFPredicate floats[] = {arith::CmpFPredicate::OEQ, arith::CmpFPredicate::UNE,
                                                    arith::CmpFPredicate::OLT, arith::CmpFPredicate::OLE,
                                                    arith::CmpFPredicate::OGT, arith::CmpFPredicate::OGE};
  static constexpr arith::CmpIPredicate integers[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                      arith::CmpIPredicate::slt, arith::CmpIPredicate::sle,
                                                      arith::CmpIPredicate::sgt, arith::CmpIPredicate::sge};
  static constexpr arith::CmpIPredicate naturals[] = {arith::CmpIPredicate::eq,  arith::CmpIPredicate::ne,
                                                      arith::CmpIPredicate::ult, arith::CmpIPredicate::ule,
                                                      arith::CmpIPredicate::ugt, arith::CmpIPredicate::uge};
  unsigned index = static_cast<unsigned>(predicate);
  mlir::Value x = materialize(a), y = materialize(b);
  mlir::Value result =
      isFloat(a.elem)
          ? arith::CmpFOp::create(*builder, *location, floats[index], x, y).getResult()
          : arith::CmpIOp::create(*builder, *location, natural ? naturals[index] : integers[index], x, y).getResult();
  return Scalar(*this, Elem::Bool, result);
}

Scalar ScalarBuilder::select(Scalar condition, Scalar a, Scalar b) {
  if (condition.isNumber())
    return condition.number.integer ? a : b;
  if (!builder)
    return stick(a.elem);
  return Scalar(
      *this, a.elem,
      arith::SelectOp::create(*builder, *location, materialize(condition), materialize(a), materialize(b)).getResult());
}
