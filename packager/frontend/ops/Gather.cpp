// Reading and writing elements by computed indices.
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

/// Indices count from the end when negative.
static Scalar wrapped(ScalarBuilder &s, Scalar index, Dim size) {
  Scalar at = s.cast(index, Elem::Index), whole = s.position(size);
  return s.select(at < 0.0, at + whole, at);
}

static llvm::Error checkIndices(Node &n, size_t index) {
  Elem elem = n.input(index).elem;
  if (elem != Elem::I64 && elem != Elem::I32)
    return n.invalid("input " + llvm::Twine(index) + " is " + nameOf(elem) + " when it should be int32 or int64");
  return llvm::Error::success();
}

/// Constant indices can be checked here; others are the caller's promise.
static llvm::Error checkRange(Node &n, const Tensor &indices, Dim size) {
  std::optional<int64_t> fixed = constantDim(size);
  if (!indices.constant || !fixed)
    return llvm::Error::success();
  for (int64_t i = 0; i < indices.constantCount(); ++i) {
    int64_t index = readElement(indices, i).integer;
    if (index < -*fixed || index >= *fixed)
      return n.invalid("index " + llvm::Twine(index) + " is out of range for size " + llvm::Twine(*fixed));
  }
  return llvm::Error::success();
}

/// A tensor that bodies load from: its IR is made here, outside of the loops, unless it folds.
static Tensor ready(Node &n, size_t index) { return n.input(index); }

static llvm::Error gather(Node &n) {
  VMPACK_CHECK(checkIndices(n, 1));
  VMPACK_CHECK(n.checkRank(0, 1));
  Tensor x = ready(n, 0), indices = ready(n, 1);
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", 0), x.rank()));
  VMPACK_CHECK(checkRange(n, indices, x.shape[axis]));
  Dims shape(x.shape.begin(), x.shape.begin() + axis);
  shape.append(indices.shape);
  shape.append(x.shape.begin() + axis + 1, x.shape.end());
  VMPACK_CHECK(n.checkShape(shape));
  // One constant index is a slice.
  if (indices.constant && isDim(n.emit.productOf(indices.shape), 1) && constantDim(x.shape[axis])) {
    int64_t index = readElement(indices, 0).integer;
    Dims offsets(x.rank(), n.emit.dim(0)), sizes = x.shape;
    offsets[axis] = n.emit.dim(index < 0 ? index + *constantDim(x.shape[axis]) : index);
    sizes[axis] = n.emit.dim(1);
    n.output(n.emit.reshape(n.emit.slice(x, offsets, sizes, Ints(x.rank(), 1)), shape));
    return llvm::Error::success();
  }
  n.output(n.emit.generate(x.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    Scalar index = s.load(indices, i.slice(axis, indices.rank()));
    llvm::SmallVector<Scalar> from(i.take_front(axis));
    from.push_back(wrapped(s, index, x.shape[axis]));
    from.append(i.begin() + axis + indices.rank(), i.end());
    return s.load(x, from);
  }));
  return llvm::Error::success();
}

/// GatherElements and ScatterElements: the indices' shape lies inside of the data's, but along the axis.
static llvm::Error checkElements(Node &n, int64_t axis) {
  VMPACK_CHECK(checkIndices(n, 1));
  const Tensor &x = n.input(0), &indices = n.input(1);
  VMPACK_CHECK(n.checkRank(1, x.rank(), x.rank()));
  VMPACK_CHECK(checkRange(n, indices, x.shape[axis]));
  for (int64_t i = 0; i < x.rank(); ++i)
    if (i != axis && constantDim(x.shape[i]) && constantDim(indices.shape[i]) &&
        *constantDim(indices.shape[i]) > *constantDim(x.shape[i]))
      return n.invalid("indices of shape " + n.emit.describe(indices) + " are larger than the data of shape " +
                       n.emit.describe(x));
  return llvm::Error::success();
}

static llvm::Error gatherElements(Node &n) {
  Tensor x = ready(n, 0), indices = ready(n, 1);
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", 0), x.rank()));
  VMPACK_CHECK(checkElements(n, axis));
  n.output(n.emit.generate(x.elem, indices.shape, [&](ScalarBuilder &s, Scalars i) {
    llvm::SmallVector<Scalar> from(i);
    from[axis] = wrapped(s, s.load(indices, i), x.shape[axis]);
    return s.load(x, from);
  }));
  return llvm::Error::success();
}

namespace {
/// How GatherND and ScatterND divide the dims.
struct NdParts {
  int64_t batch = 0, depth = 0; ///< leading dims that match; indices a position has
};
} // namespace

static llvm::Expected<NdParts> readNd(Node &n, int64_t batch) {
  VMPACK_CHECK(checkIndices(n, 1));
  VMPACK_CHECK(n.checkRank(0, 1));
  VMPACK_CHECK(n.checkRank(1, 1));
  const Tensor &x = n.input(0), &indices = n.input(1);
  std::optional<int64_t> depth = constantDim(indices.shape.back());
  if (!depth)
    return n.unsupported("indices whose last dim is symbolic are not supported");
  if (batch < 0 || batch >= indices.rank() || batch + *depth > x.rank())
    return n.invalid("indices of shape " + n.emit.describe(indices) + " do not fit data of shape " +
                     n.emit.describe(x));
  for (int64_t i = 0; i < batch; ++i)
    if (x.shape[i] != indices.shape[i])
      return n.invalid("the batch dims of " + n.emit.describe(x) + " and " + n.emit.describe(indices) + " differ");
  return NdParts{batch, *depth};
}

/// The position that the indices at `row` name: batch, then indices.
static llvm::SmallVector<Scalar> positionOf(ScalarBuilder &s, const Tensor &x, const Tensor &indices,
                                            const NdParts &parts, Scalars row) {
  llvm::SmallVector<Scalar> from(row.take_front(parts.batch));
  for (int64_t k = 0; k < parts.depth; ++k) {
    llvm::SmallVector<Scalar> at(row);
    at.push_back(s.integer(Elem::Index, k));
    from.push_back(wrapped(s, s.load(indices, at), x.shape[parts.batch + k]));
  }
  return from;
}

static llvm::Error gatherNd(Node &n) {
  VMPACK_TRY(NdParts parts, readNd(n, n.integer("batch_dims", 0)));
  Tensor x = ready(n, 0), indices = ready(n, 1);
  Dims shape(indices.shape.begin(), indices.shape.end() - 1);
  int64_t rows = shape.size();
  shape.append(x.shape.begin() + parts.batch + parts.depth, x.shape.end());
  VMPACK_CHECK(n.checkShape(shape));
  n.output(n.emit.generate(x.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    llvm::SmallVector<Scalar> from = positionOf(s, x, indices, parts, i.take_front(rows));
    from.append(i.begin() + rows, i.end());
    return s.load(x, from);
  }));
  return llvm::Error::success();
}

using Combine = Scalar (*)(ScalarBuilder &, Scalar old, Scalar update);

static llvm::Expected<Combine> readReduction(Node &n) {
  std::string name = n.string("reduction", "none");
  if (name == "none")
    return [](ScalarBuilder &, Scalar, Scalar update) { return update; };
  if (name == "add")
    return [](ScalarBuilder &, Scalar old, Scalar update) { return old + update; };
  if (name == "mul")
    return [](ScalarBuilder &, Scalar old, Scalar update) { return old * update; };
  if (name == "max")
    return [](ScalarBuilder &s, Scalar old, Scalar update) { return s.maximum(old, update); };
  if (name == "min")
    return [](ScalarBuilder &s, Scalar old, Scalar update) { return s.minimum(old, update); };
  return n.invalid("attribute 'reduction' is '" + name + "'");
}

static llvm::Error scatterElements(Node &n) {
  Tensor x = n.input(0), indices = n.input(1), updates = n.input(2);
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", 0), x.rank()));
  VMPACK_CHECK(checkElements(n, axis));
  if (updates.shape != indices.shape || updates.elem != x.elem)
    return n.invalid("the updates do not fit the indices of shape " + n.emit.describe(indices));
  VMPACK_TRY(Combine combine, readReduction(n));
  n.output(n.emit.scatter(x, indices.shape, [&](ScalarBuilder &s, Scalars i, const Tensor &now, auto &target) {
    target.assign(i.begin(), i.end());
    target[axis] = wrapped(s, s.load(indices, i), x.shape[axis]);
    return combine(s, s.load(now, target), s.load(updates, i));
  }));
  return llvm::Error::success();
}

static llvm::Error scatterNd(Node &n) {
  VMPACK_TRY(NdParts parts, readNd(n, 0));
  Tensor x = n.input(0), indices = n.input(1), updates = n.input(2);
  Dims shape(indices.shape.begin(), indices.shape.end() - 1);
  int64_t rows = shape.size();
  shape.append(x.shape.begin() + parts.depth, x.shape.end());
  if (updates.shape != shape || updates.elem != x.elem)
    return n.invalid("updates of shape " + n.emit.describe(updates) + " are no " + n.emit.describe(shape));
  VMPACK_TRY(Combine combine, readReduction(n));
  n.output(n.emit.scatter(x, shape, [&](ScalarBuilder &s, Scalars i, const Tensor &now, auto &target) {
    auto at = positionOf(s, x, indices, parts, i.take_front(rows));
    target.assign(at.begin(), at.end());
    target.append(i.begin() + rows, i.end());
    return combine(s, s.load(now, target), s.load(updates, i));
  }));
  return llvm::Error::success();
}

/// The first sequence_lens[b] steps are reversed.
static llvm::Error reverseSequence(Node &n) {
  VMPACK_CHECK(checkIndices(n, 1));
  VMPACK_CHECK(n.checkRank(0, 2));
  Tensor x = ready(n, 0), lengths = ready(n, 1);
  int64_t batch = n.integer("batch_axis", 1), time = n.integer("time_axis", 0);
  if (batch + time != 1 || batch * time != 0 || lengths.rank() != 1 || lengths.shape[0] != x.shape[batch])
    return n.invalid("batch_axis, time_axis and the lengths do not fit shape " + n.emit.describe(x));
  n.output(n.emit.generate(x.elem, x.shape, [&](ScalarBuilder &s, Scalars i) {
    llvm::SmallVector<Scalar> from(i);
    Scalar length = s.cast(s.load(lengths, i[batch]), Elem::Index);
    from[time] = s.select(i[time] < length, length - s.integer(Elem::Index, 1) - i[time], i[time]);
    return s.load(x, from);
  }));
  return llvm::Error::success();
}

/// With a condition that is known, a gather of the chosen positions.
static llvm::Error compress(Node &n) {
  Tensor x = n.input(0);
  const Tensor &condition = n.input(1);
  if (!condition.constant)
    return n.unsupported("a condition that is known only at run time is not supported");
  if (condition.elem != Elem::Bool || condition.rank() != 1)
    return n.invalid("the condition is no bool vector");
  int64_t axis = 0;
  if (n.hasAttribute("axis")) {
    VMPACK_TRY(axis, n.axis(n.integer("axis", 0), x.rank()));
  } else {
    x = n.emit.reshape(x, n.emit.productOf(x.shape));
  }
  Ints chosen;
  for (int64_t i = 0; i < condition.constantCount(); ++i)
    if (readElement(condition, i).integer)
      chosen.push_back(i);
  Tensor indices = n.emit.integers(chosen);
  VMPACK_CHECK(checkRange(n, indices, x.shape[axis]));
  Dims shape = x.shape;
  shape[axis] = n.emit.dim(chosen.size());
  n.output(n.emit.generate(x.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    llvm::SmallVector<Scalar> from(i);
    from[axis] = s.cast(s.load(indices, i[axis]), Elem::Index);
    return s.load(x, from);
  }));
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::gatherOps() {
  static const Op ops[] = {
      {"Gather", 1, 2, 2, Types::All, gather, false},
      {"GatherElements", 11, 2, 2, Types::All, gatherElements, false},
      {"GatherND", 11, 2, 2, Types::All, gatherNd, false},
      {"Scatter", 9, 3, 3, Types::All, scatterElements, false},
      {"ScatterElements", 11, 3, 3, Types::All, scatterElements, false},
      {"ScatterND", 11, 3, 3, Types::All, scatterNd, false},
      {"ReverseSequence", 10, 2, 2, Types::All, reverseSequence, false},
      {"Compress", 9, 2, 2, Types::All, compress, false},
  };
  return ops;
}
