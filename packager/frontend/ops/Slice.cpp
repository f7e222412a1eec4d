// Parts of tensors, and what surrounds them: Slice, Split, Pad, triangles and diagonals.
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

namespace {
struct SliceParameters {
  Dims starts, ends;
  Ints axes, steps;
};
} // namespace

static llvm::Expected<SliceParameters> readSlice(Node &n) {
  SliceParameters p;
  if (n.opset < 10) {
    p.starts = n.emit.dims(n.integers("starts"));
    p.ends = n.emit.dims(n.integers("ends"));
    p.axes = n.integers("axes");
  } else {
    if (!n.hasInput(1) || !n.hasInput(2))
      return n.invalid("the starts or ends are missing");
    VMPACK_TRY(p.starts, n.knownDims(1));
    VMPACK_TRY(p.ends, n.knownDims(2));
    if (n.hasInput(3)) {
      VMPACK_TRY(p.axes, n.knownIntegers(3));
    }
    if (n.hasInput(4)) {
      VMPACK_TRY(p.steps, n.knownIntegers(4));
    }
  }
  if (p.axes.empty())
    for (size_t i = 0; i < p.starts.size(); ++i)
      p.axes.push_back(i);
  if (p.steps.empty())
    p.steps.assign(p.starts.size(), 1);
  if (p.ends.size() != p.starts.size() || p.axes.size() != p.starts.size() || p.steps.size() != p.starts.size())
    return n.invalid("starts, ends, axes and steps differ in length");
  return p;
}

/// A start or end within [low, high]: numbers count from the end when negative; sizes are taken as they are.
static Dim clampBound(Emitter &emit, Dim bound, Dim size, int64_t low, Dim high) {
  std::optional<int64_t> value = constantDim(bound), fixed = constantDim(size), top = constantDim(high);
  if (value && fixed) {
    int64_t at = *value < 0 ? (*value < -*fixed ? low : *value + *fixed) : *value;
    return emit.dim(std::clamp(at, low, std::max(low, *top)));
  }
  if (value && *value >= INT32_MAX)
    return high;
  if (value && *value <= -INT32_MAX)
    return emit.dim(low);
  if (value && *value < 0) // a size that the model names is taken to be large enough, here and below
    return emit.simplify(size + *value);
  return bound == size ? high : bound;
}

static llvm::Error slice(Node &n) {
  Tensor x = n.input(0);
  VMPACK_TRY(SliceParameters p, readSlice(n));
  Emitter &e = n.emit;
  Dims offsets(x.rank(), e.dim(0)), sizes = x.shape;
  Ints strides(x.rank(), 1), flipped, seen;
  for (size_t i = 0; i < p.axes.size(); ++i) {
    VMPACK_TRY(int64_t axis, n.axis(p.axes[i], x.rank()));
    if (llvm::is_contained(seen, axis))
      return n.invalid("axis " + llvm::Twine(axis) + " is given twice");
    seen.push_back(axis);
    Dim size = x.shape[axis];
    int64_t step = p.steps[i];
    if (step == 0 || step <= -INT32_MAX)
      return n.invalid("the step is " + llvm::Twine(step));
    Dim start, end;
    if (step > 0) {
      start = clampBound(e, p.starts[i], size, 0, size);
      end = clampBound(e, p.ends[i], size, 0, size);
    } else { // the same elements from behind: of the flipped axis, from size-1-start to size-1-end
      Dim last = e.simplify(size - 1);
      Dim from = clampBound(e, p.starts[i], size, 0, last), to = clampBound(e, p.ends[i], size, -1, last);
      if (std::optional<int64_t> fixed = constantDim(size); fixed == 0)
        from = e.dim(-1), to = e.dim(-1);
      start = e.simplify(last - from);
      end = e.simplify(last - to);
      flipped.push_back(axis);
      step = -step;
    }
    Dim length = e.simplify(end - start);
    if (std::optional<int64_t> fixed = constantDim(length))
      length = e.dim(std::max<int64_t>(0, *fixed));
    offsets[axis] = start;
    sizes[axis] = step == 1 ? length : e.simplify((length + (step - 1)).floorDiv(step));
    strides[axis] = step;
    if (isDim(sizes[axis], 0))
      offsets[axis] = e.dim(0);
    if (step > INT32_MAX) // one element at most
      strides[axis] = 1;
  }
  VMPACK_CHECK(n.checkShape(sizes));
  if (!flipped.empty())
    x = e.flip(x, flipped);
  n.output(e.slice(x, offsets, sizes, strides));
  return llvm::Error::success();
}

static llvm::Error split(Node &n) {
  const Tensor &x = n.input(0);
  if (x.rank() == 0)
    return n.invalid("input 0 has rank 0");
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", 0), x.rank()));
  Dims lengths;
  if (n.hasInput(1)) {
    VMPACK_TRY(lengths, n.knownDims(1));
  } else if (n.hasAttribute("split")) {
    lengths = n.emit.dims(n.integers("split"));
  } else {
    int64_t parts = n.integer("num_outputs", n.outputCount());
    std::optional<int64_t> size = constantDim(x.shape[axis]);
    if (parts < 1 || parts > 65536 || static_cast<size_t>(parts) != n.outputCount())
      return n.invalid("there are " + llvm::Twine(n.outputCount()) + " outputs for " + llvm::Twine(parts) + " parts");
    if (!size)
      return n.unsupported("splitting a symbolic dim into equal parts is not supported; fix it with --dim");
    int64_t chunk = (*size + parts - 1) / parts;
    for (int64_t i = 0, left = *size; i < parts; ++i, left -= chunk)
      lengths.push_back(n.emit.dim(std::clamp<int64_t>(left, 0, chunk)));
  }
  if (lengths.size() != n.outputCount())
    return n.invalid("there are " + llvm::Twine(n.outputCount()) + " outputs for " + llvm::Twine(lengths.size()) +
                     " parts");
  VMPACK_CHECK(n.checkShape(lengths));
  Dim total = n.emit.dim(0);
  for (Dim length : lengths)
    total = n.emit.simplify(total + length);
  if (constantDim(total) && constantDim(x.shape[axis]) && total != x.shape[axis])
    return n.invalid("the parts have " + llvm::Twine(*constantDim(total)) + " elements when axis " + llvm::Twine(axis) +
                     " has " + llvm::Twine(*constantDim(x.shape[axis])));
  Dims offsets(x.rank(), n.emit.dim(0)), sizes = x.shape;
  for (Dim length : lengths) {
    sizes[axis] = length;
    n.output(n.emit.slice(x, offsets, sizes, Ints(x.rank(), 1)));
    offsets[axis] = n.emit.simplify(offsets[axis] + length);
  }
  return llvm::Error::success();
}

/// The index that a position outside of [0, size) stands for.
static Scalar inside(ScalarBuilder &s, llvm::StringRef mode, Scalar at, Scalar size) {
  Scalar none = s.integer(Elem::Index, 0), one = s.integer(Elem::Index, 1);
  if (mode == "edge")
    return s.minimum(s.maximum(at, none), size - one);
  if (mode == "wrap")
    return s.modulo(at, size);
  // reflect: a triangle wave of period 2 * (size - 1)
  Scalar period = s.maximum((size - one) * s.integer(Elem::Index, 2), one);
  Scalar phase = s.modulo(at, period);
  return s.select(phase < size, phase, period - phase);
}

static llvm::Error padWith(Node &n, llvm::StringRef mode, llvm::ArrayRef<Dim> before, llvm::ArrayRef<Dim> after,
                           Number number) {
  Emitter &e = n.emit;
  Tensor x = n.input(0);
  // Negative paddings cut.
  Dims offsets, sizes, low, high, shape;
  for (auto [size, lo, hi] : llvm::zip_equal(x.shape, before, after)) {
    int64_t cutLow = std::max<int64_t>(0, -constantDim(lo).value_or(0));
    int64_t cutHigh = std::max<int64_t>(0, -constantDim(hi).value_or(0));
    offsets.push_back(e.dim(cutLow));
    sizes.push_back(e.simplify(size - cutLow - cutHigh));
    low.push_back(e.simplify(lo + cutLow));
    high.push_back(e.simplify(hi + cutHigh));
    shape.push_back(e.simplify(size + lo + hi));
  }
  VMPACK_CHECK(n.checkShape(sizes));
  VMPACK_CHECK(n.checkShape(shape));
  x = e.slice(x, offsets, sizes, Ints(x.rank(), 1));
  if (mode == "constant") {
    n.output(e.pad(x, low, high, number));
    return llvm::Error::success();
  }
  if (x.shape == shape) {
    n.output(x);
    return llvm::Error::success();
  }
  for (Dim size : x.shape)
    if (isDim(size, 0))
      return n.invalid("an empty tensor cannot be padded by its elements");
  e.valueOf(x);
  n.output(e.generate(x.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    llvm::SmallVector<Scalar> from(i);
    for (auto [axis, at] : llvm::enumerate(from))
      if (!isDim(low[axis], 0) || !isDim(high[axis], 0))
        at = inside(s, mode, at - s.position(low[axis]), s.position(x.shape[axis]));
    return s.load(x, from);
  }));
  return llvm::Error::success();
}

static llvm::Error pad(Node &n) {
  const Tensor &x = n.input(0);
  std::string mode = n.string("mode", "constant");
  if (mode != "constant" && mode != "reflect" && mode != "edge" && mode != "wrap")
    return n.invalid("attribute 'mode' is '" + mode + "'");
  Dims pads;
  Number number;
  if (n.opset < 11) {
    pads = n.emit.dims(n.integers(n.opset < 2 ? "paddings" : "pads"));
    number.real = n.real("value", 0);
    number = converted(Elem::F64, x.elem, number);
  } else {
    if (!n.hasInput(1))
      return n.invalid("input 1 is missing");
    VMPACK_TRY(pads, n.knownDims(1));
    if (n.hasInput(2) && mode == "constant") {
      if (n.input(2).elem != x.elem)
        return n.invalid("the value's type differs from the input's");
      VMPACK_TRY(number, n.knownNumber(2));
    }
  }
  Ints axes;
  if (n.hasInput(3)) {
    VMPACK_TRY(axes, n.knownIntegers(3));
  } else {
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      axes.push_back(axis);
  }
  if (pads.size() != 2 * axes.size())
    return n.invalid("there are " + llvm::Twine(pads.size()) + " paddings when there should be " +
                     llvm::Twine(2 * axes.size()));
  Dims before(x.rank(), n.emit.dim(0)), after = before;
  for (auto [i, value] : llvm::enumerate(axes)) {
    VMPACK_TRY(int64_t axis, n.axis(value, x.rank()));
    before[axis] = pads[i];
    after[axis] = pads[axes.size() + i];
    for (Dim padding : {before[axis], after[axis]})
      if (std::optional<int64_t> fixed = constantDim(padding); fixed && std::abs(*fixed) > (int64_t(1) << 40))
        return n.invalid("a padding is " + llvm::Twine(*fixed));
  }
  return padWith(n, mode, before, after, number);
}

static llvm::Error trilu(Node &n) {
  VMPACK_CHECK(n.checkRank(0, 2));
  const Tensor &x = n.input(0);
  Tensor shift;
  if (n.hasInput(1)) {
    if (n.input(1).elem != Elem::I64 || !isDim(n.emit.productOf(n.input(1).shape), 1))
      return n.invalid("input 1 is no int64 scalar");
    shift = n.emit.reshape(n.input(1), {});
  }
  bool upper = n.integer("upper", 1);
  Tensor ready = x;
  if (!x.isKnown())
    n.emit.valueOf(ready);
  n.output(n.emit.generate(x.elem, x.shape, [&](ScalarBuilder &s, Scalars i) {
    Scalar row = i[i.size() - 2], column = i.back();
    if (shift)
      row = row + s.cast(s.load(shift, {}), Elem::Index);
    Scalar kept = upper ? column >= row : column <= row;
    return s.select(kept, s.load(ready, i), s.constant(x.elem, 0));
  }));
  return llvm::Error::success();
}

static llvm::Error eyeLike(Node &n) {
  VMPACK_CHECK(n.checkRank(0, 2, 2));
  Elem elem = elemOf(static_cast<int>(n.integer("dtype", static_cast<int>(n.input(0).elem))));
  if (elem == Elem::None || elem == Elem::String)
    return n.unsupported("the element type is not supported");
  int64_t shift = std::clamp<int64_t>(n.integer("k", 0), -(int64_t(1) << 40), int64_t(1) << 40);
  n.output(n.emit.generate(elem, n.input(0).shape, [&](ScalarBuilder &s, Scalars i) {
    return s.select(i[1] == i[0] + s.integer(Elem::Index, shift), s.constant(elem, 1), s.constant(elem, 0));
  }));
  return llvm::Error::success();
}

static llvm::Error oneHot(Node &n) {
  Emitter &e = n.emit;
  const Tensor &indices = n.input(0), &values = n.input(2);
  if (values.rank() != 1 || !isDim(values.shape[0], 2))
    return n.invalid("input 2 does not have two elements");
  if (!n.input(1).constant && !n.input(1).elements)
    return n.unsupported("input 1 must be known when the model is compiled");
  Tensor depthTensor = e.cast(e.reshape(n.input(1), {}), Elem::I64);
  if (!isDim(e.productOf(n.input(1).shape), 1))
    return n.invalid("the depth is no scalar");
  Dim depth = depthTensor.constant ? e.dim(readElement(depthTensor, 0).integer) : depthTensor.elements->front();
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", -1), indices.rank() + 1));
  Dims shape = indices.shape;
  shape.insert(shape.begin() + axis, depth);
  VMPACK_CHECK(n.checkShape(shape));
  Tensor ready = indices, choice = values;
  n.output(e.generate(values.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    llvm::SmallVector<Scalar> at(i);
    at.erase(at.begin() + axis);
    Scalar index = s.cast(s.load(ready, at), Elem::I64), size = s.cast(s.position(depth), Elem::I64);
    index = s.select(index < 0.0, index + size, index);
    Scalar hit = s.compare(Compare::Equal, index, s.cast(i[axis], Elem::I64));
    return s.select(hit, s.load(choice, {s.integer(Elem::Index, 1)}), s.load(choice, {s.integer(Elem::Index, 0)}));
  }));
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::sliceOps() {
  static const Op ops[] = {
      {"Slice", 1, 1, 5, Types::All, slice, false},     {"Split", 1, 1, 2, Types::All, split, false},
      {"Pad", 1, 1, 4, Types::All, pad, false},         {"Trilu", 14, 1, 2, Types::All, trilu, false},
      {"EyeLike", 9, 1, 1, Types::All, eyeLike, false}, {"OneHot", 9, 3, 3, Types::Numeric, oneHot, false},
  };
  return ops;
}
