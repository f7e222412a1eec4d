// Reductions along axes.
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

namespace {
/// What a Reduce* op does: each element through `before`, combined by `step`, the result through `after` (with the
/// number of elements that went in).
struct Reduction {
  Number (*initial)(Elem);
  Scalar (*step)(ScalarBuilder &, Scalar sum, Scalar x);
  Scalar (*after)(ScalarBuilder &, Scalar sum, Scalar count) = nullptr;
};
} // namespace

static Number zero(Elem) { return {}; }
static Number one(Elem) { return {1, 1}; }
static Number lowest(Elem elem) { return ScalarBuilder(nullptr, 0).extreme(elem, true).number; }
static Number highest(Elem elem) { return ScalarBuilder(nullptr, 0).extreme(elem, false).number; }
static Scalar add(ScalarBuilder &, Scalar sum, Scalar x) { return sum + x; }
static Scalar multiply(ScalarBuilder &, Scalar sum, Scalar x) { return sum * x; }
static Scalar addSquare(ScalarBuilder &, Scalar sum, Scalar x) { return sum + x * x; }
static Scalar addAbsolute(ScalarBuilder &s, Scalar sum, Scalar x) { return sum + s.absolute(x); }
static Scalar larger(ScalarBuilder &s, Scalar sum, Scalar x) { return s.maximum(sum, x); }
static Scalar smaller(ScalarBuilder &s, Scalar sum, Scalar x) { return s.minimum(sum, x); }
static Scalar logarithm(ScalarBuilder &s, Scalar sum, Scalar) { return s.function(Function::Log, sum); }
static Scalar divide(ScalarBuilder &s, Scalar sum, Scalar count) { return sum / s.cast(count, sum.elem); }
static Scalar root(ScalarBuilder &s, Scalar sum, Scalar) {
  return isFloat(sum.elem) ? s.function(Function::Sqrt, sum)
                           : s.cast(s.function(Function::Sqrt, s.cast(sum, Elem::F64)), sum.elem);
}

/// The axes to reduce: attribute or input 1; none means all, or nothing when the op says so.
static llvm::Expected<std::optional<Ints>> reducedAxes(Node &n, int64_t rank) {
  Ints given;
  if (n.hasInput(1)) {
    VMPACK_TRY(given, n.knownIntegers(1));
  } else {
    given = n.integers("axes");
  }
  if (given.empty() && n.integer("noop_with_empty_axes", 0))
    return std::optional<Ints>();
  VMPACK_TRY(Ints axes, n.axes(given, rank));
  if (given.empty())
    for (int64_t axis = 0; axis < rank; ++axis)
      axes.push_back(axis);
  return std::optional(axes);
}

static Dim reducedCount(Emitter &emit, const Tensor &x, llvm::ArrayRef<int64_t> axes) {
  Dims sizes;
  for (int64_t axis : axes)
    sizes.push_back(x.shape[axis]);
  return emit.productOf(sizes);
}

static llvm::Error reduceBy(Node &n, const Reduction &reduction) {
  const Tensor &x = n.input(0);
  VMPACK_TRY(std::optional<Ints> axes, reducedAxes(n, x.rank()));
  if (!axes) {
    n.output(x);
    return llvm::Error::success();
  }
  bool keep = n.integer("keepdims", 1);
  Dim count = reducedCount(n.emit, x, *axes);
  Tensor sum = n.emit.reduce(x, *axes, keep, x.elem, reduction.initial(x.elem), reduction.step);
  if (reduction.after)
    sum = n.emit.pointwiseTo(x.elem, sum.shape, sum,
                             [&](ScalarBuilder &s, Scalars v) { return reduction.after(s, v[0], s.position(count)); });
  n.output(sum);
  return llvm::Error::success();
}

static llvm::Error reduceSum(Node &n) { return reduceBy(n, {zero, add}); }
static llvm::Error reduceMean(Node &n) { return reduceBy(n, {zero, add, divide}); }
static llvm::Error reduceProd(Node &n) { return reduceBy(n, {one, multiply}); }
static llvm::Error reduceMax(Node &n) { return reduceBy(n, {lowest, larger}); }
static llvm::Error reduceMin(Node &n) { return reduceBy(n, {highest, smaller}); }
static llvm::Error reduceL1(Node &n) { return reduceBy(n, {zero, addAbsolute}); }
static llvm::Error reduceL2(Node &n) { return reduceBy(n, {zero, addSquare, root}); }
static llvm::Error reduceSumSquare(Node &n) { return reduceBy(n, {zero, addSquare}); }
static llvm::Error reduceLogSum(Node &n) { return reduceBy(n, {zero, add, logarithm}); }

/// log(sum(exp(x))) as max + log(sum(exp(x - max))), which does not overflow.
static llvm::Error reduceLogSumExp(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_TRY(std::optional<Ints> axes, reducedAxes(n, x.rank()));
  if (!axes) {
    n.output(x);
    return llvm::Error::success();
  }
  Emitter &e = n.emit;
  Tensor most = e.reduce(x, *axes, true, x.elem, lowest(x.elem), larger);
  // An infinite maximum would make inf - inf.
  most = e.pointwiseTo(x.elem, most.shape, most, [](ScalarBuilder &s, Scalars v) {
    Scalar finite = s.compare(Compare::Less, s.absolute(v[0]), s.infinity(v[0].elem, false));
    return s.select(finite, v[0], s.constant(v[0].elem, 0));
  });
  Tensor shifted = e.pointwiseTo(x.elem, x.shape, {x, most},
                                 [](ScalarBuilder &s, Scalars v) { return s.function(Function::Exp, v[0] - v[1]); });
  Tensor sum = e.reduce(shifted, *axes, true, x.elem, Number{}, add);
  Tensor result = e.pointwiseTo(x.elem, sum.shape, {sum, most},
                                [](ScalarBuilder &s, Scalars v) { return s.function(Function::Log, v[0]) + v[1]; });
  if (!n.integer("keepdims", 1)) {
    Dims shape;
    for (auto [i, size] : llvm::enumerate(x.shape))
      if (!llvm::is_contained(*axes, static_cast<int64_t>(i)))
        shape.push_back(size);
    result = e.reshape(result, shape);
  }
  n.output(result);
  return llvm::Error::success();
}

template <bool largest> static llvm::Error argOf(Node &n) {
  const Tensor &x = n.input(0);
  if (x.rank() == 0)
    return n.invalid("input 0 has rank 0");
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", 0), x.rank()));
  n.output(n.emit.argReduce(x, axis, n.integer("keepdims", 1), largest, n.integer("select_last_index", 0)));
  return llvm::Error::success();
}

static llvm::Error cumulativeSum(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_TRY(Ints axes, n.knownIntegers(1));
  if (axes.size() != 1)
    return n.invalid("the axis is no scalar");
  VMPACK_TRY(int64_t axis, n.axis(axes[0], x.rank()));
  n.output(n.emit.cumulativeSum(x, axis, n.integer("exclusive", 0), n.integer("reverse", 0)));
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::reduceOps() {
  static const Op ops[] = {
      {"ReduceSum", 1, 1, 2, Types::Numeric, reduceSum},
      {"ReduceMean", 1, 1, 2, Types::Numeric, reduceMean},
      {"ReduceProd", 1, 1, 2, Types::Numeric, reduceProd},
      {"ReduceMax", 1, 1, 2, Types::All, reduceMax},
      {"ReduceMin", 1, 1, 2, Types::All, reduceMin},
      {"ReduceL1", 1, 1, 2, Types::Numeric, reduceL1},
      {"ReduceL2", 1, 1, 2, Types::Numeric, reduceL2},
      {"ReduceSumSquare", 1, 1, 2, Types::Numeric, reduceSumSquare},
      {"ReduceLogSum", 1, 1, 2, Types::Float, reduceLogSum},
      {"ReduceLogSumExp", 1, 1, 2, Types::Float, reduceLogSumExp},
      {"ArgMax", 1, 1, 1, Types::Numeric, argOf<true>},
      {"ArgMin", 1, 1, 1, Types::Numeric, argOf<false>},
      {"CumSum", 11, 2, 2, Types::Numeric, cumulativeSum},
  };
  return ops;
}
