// Element-wise code and reductions: everything here is a linalg.generic.
#include "packager/frontend/Emitter.h"

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"

using namespace vmpack::frontend;
namespace linalg = mlir::linalg;
using mlir::AffineMap;
using Iterator = mlir::utils::IteratorType;

mlir::Value Emitter::filled(Elem elem, llvm::ArrayRef<Dim> shape, Number number) {
  ScalarBuilder scalars(*this, builder, location);
  mlir::Value value = scalars.materialize(Scalar(scalars, elem, number));
  return linalg::FillOp::create(builder, location, value, empty(elem, shape)).getResult(0);
}

mlir::Value Emitter::dropUnits(const Tensor &tensor, llvm::ArrayRef<bool> dropped) {
  Dims left;
  for (auto [dim, drop] : llvm::zip_equal(tensor.shape, dropped))
    if (!drop)
      left.push_back(dim);
  return valueOf(reshape(tensor, left));
}

Tensor Emitter::pointwiseTo(Elem elem, llvm::ArrayRef<Dim> shape, llvm::ArrayRef<Tensor> operands, Body body) {
  if (std::optional<Tensor> folded = foldPointwise(elem, shape, operands, body))
    return *folded;
  llvm::SmallVector<mlir::Value> inputs;
  llvm::SmallVector<AffineMap> maps;
  llvm::SmallVector<int> inputOf; // operand → which block argument, or -1: it is a scalar
  unsigned rank = shape.size();
  for (const Tensor &operand : operands) {
    bool isScalar = splatOf(operand) || (operand.elements && operand.elements->size() == 1);
    inputOf.push_back(isScalar ? -1 : static_cast<int>(inputs.size()));
    if (isScalar)
      continue;
    llvm::SmallVector<bool> dropped;
    llvm::SmallVector<Dim> results;
    for (auto [i, size] : llvm::enumerate(operand.shape)) {
      unsigned axis = rank - operand.shape.size() + i;
      dropped.push_back(isDim(size, 1) && !isDim(shape[axis], 1));
      if (!dropped.back())
        results.push_back(mlir::getAffineDimExpr(axis, context));
    }
    inputs.push_back(llvm::is_contained(dropped, true) ? dropUnits(operand, dropped) : valueOf(operand));
    maps.push_back(AffineMap::get(rank, 0, results, context));
  }
  maps.push_back(AffineMap::getMultiDimIdentityMap(rank, context));
  mlir::Value init = empty(elem, shape);
  auto region = [&](mlir::OpBuilder &inner, mlir::Location loc, mlir::ValueRange arguments) {
    ScalarBuilder scalars(*this, inner, loc);
    llvm::SmallVector<Scalar> values;
    for (auto [operand, input] : llvm::zip_equal(operands, inputOf)) {
      if (input >= 0)
        values.push_back(Scalar(scalars, operand.elem, arguments[input]));
      else if (operand.constant)
        values.push_back(Scalar(scalars, operand.elem, *splatOf(operand)));
      else
        values.push_back(Scalar(scalars, operand.elem, operand.elements->front()));
    }
    linalg::YieldOp::create(inner, loc, scalars.materialize(body(scalars, values)));
  };
  llvm::SmallVector<Iterator> iterators(rank, Iterator::parallel);
  auto op = linalg::GenericOp::create(builder, location, init.getType(), inputs, init, maps, iterators, region);
  return ofValue(elem, shape, op.getResult(0));
}

llvm::Expected<Tensor> Emitter::pointwise(Elem elem, llvm::ArrayRef<Tensor> operands, Body body) {
  llvm::SmallVector<Dims> shapes;
  for (const Tensor &operand : operands)
    shapes.push_back(operand.shape);
  VMPACK_TRY(Dims shape, broadcast(shapes));
  return pointwiseTo(elem, shape, operands, body);
}

Tensor Emitter::cast(const Tensor &tensor, Elem to) {
  if (tensor.elem == to)
    return tensor;
  return pointwiseTo(to, tensor.shape, tensor,
                     [&](ScalarBuilder &scalars, llvm::ArrayRef<Scalar> x) { return scalars.cast(x[0], to); });
}

Tensor Emitter::generate(Elem elem, llvm::ArrayRef<Dim> shape, Generator body) {
  if (std::optional<Tensor> folded = foldGenerate(elem, shape, body))
    return *folded;
  mlir::Value init = empty(elem, shape);
  auto region = [&](mlir::OpBuilder &inner, mlir::Location loc, mlir::ValueRange) {
    ScalarBuilder scalars(*this, inner, loc);
    llvm::SmallVector<Scalar> positions;
    for (unsigned axis = 0; axis < shape.size(); ++axis)
      positions.push_back(Scalar(scalars, Elem::Index, linalg::IndexOp::create(inner, loc, axis).getResult()));
    linalg::YieldOp::create(inner, loc, scalars.materialize(body(scalars, positions)));
  };
  llvm::SmallVector<Iterator> iterators(shape.size(), Iterator::parallel);
  AffineMap map = AffineMap::getMultiDimIdentityMap(shape.size(), context);
  auto op =
      linalg::GenericOp::create(builder, location, init.getType(), mlir::ValueRange{}, init, map, iterators, region);
  return ofValue(elem, shape, op.getResult(0));
}

/// How a reduction runs over its operand: which loops reduce, and the map of the result.
namespace {
struct ReductionLoops {
  llvm::SmallVector<Iterator> iterators;
  AffineMap input, output;
  Dims left, kept;

  ReductionLoops(Emitter &emitter, llvm::ArrayRef<Dim> shape, llvm::ArrayRef<int64_t> axes) {
    llvm::SmallVector<Dim> results;
    for (auto [axis, size] : llvm::enumerate(shape)) {
      bool reduced = llvm::is_contained(axes, static_cast<int64_t>(axis));
      iterators.push_back(reduced ? Iterator::reduction : Iterator::parallel);
      kept.push_back(reduced ? emitter.dim(1) : size);
      if (reduced)
        continue;
      left.push_back(size);
      results.push_back(mlir::getAffineDimExpr(axis, emitter.context));
    }
    input = AffineMap::getMultiDimIdentityMap(shape.size(), emitter.context);
    output = AffineMap::get(shape.size(), 0, results, emitter.context);
  }
};
} // namespace

/// Folds a reduction of a constant or of expressions.
static std::optional<Tensor> foldReduce(Emitter &emitter, const Tensor &tensor, const ReductionLoops &loops,
                                        llvm::ArrayRef<int64_t> axes, Elem elem, Number initial, Step step) {
  std::optional<Ints> sizes = staticDims(tensor.shape);
  if (!tensor.isKnown() || !sizes || constantDim(emitter.productOf(tensor.shape)).value_or(INT64_MAX) > 1 << 16)
    return std::nullopt;
  bool stuck = false;
  ScalarBuilder scalars(emitter.context, emitter.symbols.size());
  std::vector<Scalar> sums(*constantDim(emitter.productOf(loops.left)), Scalar(scalars, elem, initial));
  Ints index(sizes->size(), 0);
  int64_t count = *constantDim(emitter.productOf(tensor.shape));
  for (int64_t i = 0; i < count; ++i) {
    int64_t at = 0;
    llvm::SmallVector<Scalar> positions;
    for (auto [axis, size] : llvm::enumerate(*sizes)) {
      positions.push_back(scalars.integer(Elem::Index, index[axis]));
      if (!llvm::is_contained(axes, static_cast<int64_t>(axis)))
        at = at * size + index[axis];
    }
    sums[at] = step(scalars, sums[at], scalars.load(tensor, positions));
    stuck |= scalars.stuck || !sums[at].isNumber();
    for (int64_t axis = index.size() - 1; axis >= 0 && ++index[axis] == (*sizes)[axis]; --axis)
      index[axis] = 0;
  }
  if (stuck && !(sums.size() == 1 && !scalars.stuck))
    return std::nullopt;
  if (sums.size() == 1 && sums[0].isExpression())
    return emitter.expressions(elem, sums[0].dim, loops.left);
  std::string bytes;
  for (Scalar sum : sums)
    appendElement(elem, sum.number, bytes);
  return emitter.constant(elem, *staticDims(loops.left), std::move(bytes));
}

Tensor Emitter::reduce(const Tensor &tensor, llvm::ArrayRef<int64_t> axes, bool keepDims, Elem elem, Number initial,
                       Step step) {
  ReductionLoops loops(*this, tensor.shape, axes);
  Tensor result;
  if (std::optional<Tensor> folded = foldReduce(*this, tensor, loops, axes, elem, initial, step)) {
    result = *folded;
  } else {
    mlir::Value source = valueOf(tensor), init = filled(elem, loops.left, initial);
    auto region = [&](mlir::OpBuilder &inner, mlir::Location loc, mlir::ValueRange arguments) {
      ScalarBuilder scalars(*this, inner, loc);
      Scalar sum = step(scalars, Scalar(scalars, elem, arguments[1]), Scalar(scalars, tensor.elem, arguments[0]));
      linalg::YieldOp::create(inner, loc, scalars.materialize(sum));
    };
    auto op = linalg::GenericOp::create(builder, location, init.getType(), source, init,
                                        llvm::ArrayRef<AffineMap>{loops.input, loops.output}, loops.iterators, region);
    result = ofValue(elem, loops.left, op.getResult(0));
  }
  return keepDims ? reshape(result, loops.kept) : result;
}

Tensor Emitter::argReduce(const Tensor &tensor, int64_t axis, bool keepDims, bool largest, bool last) {
  ReductionLoops loops(*this, tensor.shape, axis);
  ScalarBuilder outer(*this, builder, location);
  mlir::Value source = valueOf(tensor);
  mlir::Value best = filled(tensor.elem, loops.left, outer.extreme(tensor.elem, largest).number);
  mlir::Value where = filled(Elem::I64, loops.left, Number{});
  auto region = [&](mlir::OpBuilder &inner, mlir::Location loc, mlir::ValueRange arguments) {
    ScalarBuilder scalars(*this, inner, loc);
    Scalar x(scalars, tensor.elem, arguments[0]), record(scalars, tensor.elem, arguments[1]);
    Scalar position(scalars, Elem::I64, arguments[2]);
    Scalar at(scalars, Elem::Index, linalg::IndexOp::create(inner, loc, axis).getResult());
    Compare better =
        largest ? (last ? Compare::GreaterEqual : Compare::Greater) : (last ? Compare::LessEqual : Compare::Less);
    Scalar wins = scalars.compare(better, x, record);
    linalg::YieldOp::create(
        inner, loc,
        mlir::ValueRange{scalars.materialize(scalars.select(wins, x, record)),
                         scalars.materialize(scalars.select(wins, scalars.cast(at, Elem::I64), position))});
  };
  auto op = linalg::GenericOp::create(
      builder, location, mlir::TypeRange{best.getType(), where.getType()}, source, mlir::ValueRange{best, where},
      llvm::ArrayRef<AffineMap>{loops.input, loops.output, loops.output}, loops.iterators, region);
  Tensor result = ofValue(Elem::I64, loops.left, op.getResult(1));
  return keepDims ? reshape(result, loops.kept) : result;
}

Tensor Emitter::cumulativeSum(const Tensor &tensor, int64_t axis, bool exclusive, bool reverse) {
  unsigned rank = tensor.rank();
  llvm::SmallVector<Dim> from, to;
  for (unsigned i = 0; i < rank; ++i) {
    from.push_back(mlir::getAffineDimExpr(i == axis ? rank : i, context));
    to.push_back(mlir::getAffineDimExpr(i, context));
  }
  llvm::SmallVector<Iterator> iterators(rank, Iterator::parallel);
  iterators.push_back(Iterator::reduction);
  mlir::Value source = valueOf(tensor), init = filled(tensor.elem, tensor.shape, Number{});
  auto region = [&](mlir::OpBuilder &inner, mlir::Location loc, mlir::ValueRange arguments) {
    ScalarBuilder scalars(*this, inner, loc);
    Scalar i(scalars, Elem::Index, linalg::IndexOp::create(inner, loc, axis).getResult());
    Scalar j(scalars, Elem::Index, linalg::IndexOp::create(inner, loc, rank).getResult());
    Compare before = reverse ? (exclusive ? Compare::Greater : Compare::GreaterEqual)
                             : (exclusive ? Compare::Less : Compare::LessEqual);
    Scalar x(scalars, tensor.elem, arguments[0]), sum(scalars, tensor.elem, arguments[1]);
    Scalar next = scalars.select(scalars.compare(before, j, i), sum + x, sum);
    linalg::YieldOp::create(inner, loc, scalars.materialize(next));
  };
  auto op = linalg::GenericOp::create(
      builder, location, init.getType(), source, init,
      llvm::ArrayRef<AffineMap>{AffineMap::get(rank + 1, 0, from, context), AffineMap::get(rank + 1, 0, to, context)},
      iterators, region);
  return ofValue(tensor.elem, tensor.shape, op.getResult(0));
}

Tensor Emitter::scatter(const Tensor &data, llvm::ArrayRef<Dim> shape, ScatterBody body) {
  namespace scf = mlir::scf;
  mlir::Value zero = sizeOf(dim(0)), one = sizeOf(dim(1));
  llvm::SmallVector<mlir::Value> lower(shape.size(), zero), upper, steps(shape.size(), one);
  for (Dim size : shape)
    upper.push_back(sizeOf(size));
  mlir::Value start = valueOf(data);
  auto region = [&](mlir::OpBuilder &inner, mlir::Location loc, mlir::ValueRange indices, mlir::ValueRange state) {
    mlir::OpBuilder::InsertionGuard guard(builder);
    ScalarBuilder scalars(*this, inner, loc);
    llvm::SmallVector<Scalar> positions, target;
    for (mlir::Value index : indices)
      positions.push_back(Scalar(scalars, Elem::Index, index));
    Tensor now = ofValue(data.elem, data.shape, state[0]);
    mlir::Value value = scalars.materialize(body(scalars, positions, now, target));
    llvm::SmallVector<mlir::Value> at;
    for (Scalar index : target)
      at.push_back(scalars.materialize(scalars.cast(index, Elem::Index)));
    return scf::ValueVector{mlir::tensor::InsertOp::create(inner, loc, value, state[0], at).getResult()};
  };
  scf::LoopNest nest = scf::buildLoopNest(builder, location, lower, upper, steps, start, region);
  return ofValue(data.elem, data.shape, nest.results.front());
}

/// Loops of this many steps stay loops; shorter ones are unrolled, so that every step can fold and fuse.
static constexpr int64_t unrolledSteps = 16;

llvm::SmallVector<Tensor> Emitter::loop(Dim count, llvm::ArrayRef<Tensor> states, LoopBody body) {
  llvm::SmallVector<Tensor> now(states);
  if (std::optional<int64_t> fixed = constantDim(count); fixed && *fixed <= unrolledSteps) {
    for (int64_t step = 0; step < *fixed; ++step)
      now = body(dim(step), now);
    return now;
  }
  llvm::SmallVector<mlir::Value> values;
  for (Tensor &state : now)
    values.push_back(valueOf(state));
  auto loop = mlir::scf::ForOp::create(builder, location, sizeOf(dim(0)), sizeOf(count), sizeOf(dim(1)), values);
  mlir::OpBuilder::InsertionGuard guard(builder);
  builder.setInsertionPointToStart(loop.getBody());
  Dim step = addSymbol({"step", nullptr, 0, loop.getInductionVar()});
  for (auto [state, argument] : llvm::zip_equal(now, loop.getRegionIterArgs()))
    state = ofValue(state.elem, state.shape, argument);
  llvm::SmallVector<Tensor> next = body(step, now);
  for (auto [value, state] : llvm::zip_equal(values, next))
    value = valueOf(state);
  mlir::scf::YieldOp::create(builder, location, values);
  for (auto [state, result] : llvm::zip_equal(now, loop.getResults()))
    state = ofValue(state.elem, state.shape, result);
  return now;
}
