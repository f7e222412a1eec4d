// Ops that rename, reorder or make elements: reshapes, transposes, concatenation, constants.
#include "packager/frontend/Node.h"

#include <onnx/onnx_pb.h>

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

static llvm::Error identity(Node &n) {
  n.output(n.input(0));
  return llvm::Error::success();
}

/// At inference a dropout passes its input on, and its mask is all true.
static llvm::Error dropout(Node &n) {
  bool training = false;
  if (n.hasInput(2)) {
    VMPACK_TRY(Number mode, n.knownNumber(2));
    training = mode.integer;
  }
  if (training && n.hasInput(1)) {
    VMPACK_TRY(Number ratio, n.knownNumber(1));
    training = ratio.real != 0;
  }
  if (training)
    return n.unsupported("training mode is not supported: its result is random");
  n.output(n.input(0));
  if (n.hasOutput(1))
    n.output(n.emit.splat(n.opset >= 10 ? Elem::Bool : n.input(0).elem, n.input(0).shape, Number{1, 1}));
  return llvm::Error::success();
}

static llvm::Error constant(Node &n) {
  Tensor result;
  if (n.hasAttribute("value")) {
    VMPACK_TRY(result, n.tensor("value"));
  } else if (n.hasAttribute("value_float")) {
    result = n.emit.real(Elem::F32, n.real("value_float", 0));
  } else if (n.hasAttribute("value_int")) {
    result = n.emit.splat(Elem::I64, {}, Number{0, n.integer("value_int", 0)});
  } else if (n.hasAttribute("value_ints")) {
    result = n.emit.integers(n.integers("value_ints"));
  } else if (n.hasAttribute("value_floats")) {
    std::string bytes;
    auto values = n.reals("value_floats");
    for (double value : values)
      appendElement(Elem::F32, Number{value, 0}, bytes);
    result = n.emit.constant(Elem::F32, {static_cast<int64_t>(values.size())}, bytes);
  } else {
    return n.unsupported("a constant of this kind is not supported");
  }
  n.output(result);
  return llvm::Error::success();
}

static llvm::Error constantOfShape(Node &n) {
  VMPACK_TRY(Dims shape, n.knownDims(0));
  VMPACK_CHECK(n.checkShape(shape));
  Tensor value = n.emit.real(Elem::F32, 0);
  if (n.hasAttribute("value")) {
    VMPACK_TRY(value, n.tensor("value"));
    if (value.constantCount() != 1)
      return n.invalid("attribute 'value' has " + llvm::Twine(value.constantCount()) +
                       " elements when it should have 1");
  }
  n.output(n.emit.splat(value.elem, shape, readElement(value, 0)));
  return llvm::Error::success();
}

static llvm::Error shapeOf(Node &n) {
  const Dims &shape = n.input(0).shape;
  int64_t rank = shape.size(), start = n.integer("start", 0), end = n.integer("end", rank);
  start = std::clamp<int64_t>(start < 0 ? start + rank : start, 0, rank);
  end = std::clamp<int64_t>(end < 0 ? end + rank : end, start, rank);
  auto part = llvm::ArrayRef<Dim>(shape).slice(start, end - start);
  n.output(n.emit.expressions(Elem::I64, part, {n.emit.dim(end - start)}));
  return llvm::Error::success();
}

static llvm::Error sizeOf(Node &n) {
  n.output(n.emit.expressions(Elem::I64, n.emit.productOf(n.input(0).shape), {}));
  return llvm::Error::success();
}

static llvm::Error reshape(Node &n) {
  const Tensor &x = n.input(0);
  Dims wanted;
  if (n.opset < 5)
    wanted = n.emit.dims(n.integers("shape"));
  else if (n.hasInput(1)) {
    VMPACK_TRY(wanted, n.knownDims(1));
  } else {
    return n.invalid("input 1 is missing");
  }
  bool keepZero = n.integer("allowzero", 0);
  int inferred = -1;
  Dims others;
  for (auto [i, dim] : llvm::enumerate(wanted)) {
    if (isDim(dim, -1)) {
      if (inferred >= 0)
        return n.invalid("the shape has two -1");
      inferred = i;
      continue;
    }
    if (isDim(dim, 0) && !keepZero) {
      if (i >= x.shape.size())
        return n.invalid("the shape copies dim " + llvm::Twine(i) + " of an input of rank " + llvm::Twine(x.rank()));
      dim = x.shape[i];
    }
    others.push_back(dim);
  }
  VMPACK_CHECK(n.checkShape(others));
  Dim count = n.emit.productOf(x.shape), known = n.emit.productOf(others);
  auto mismatch = [&] {
    return n.invalid("an input of shape " + n.emit.describe(x) + " cannot have the shape " + n.emit.describe(wanted));
  };
  if (inferred >= 0) {
    if (isDim(known, 0)) {
      if (!isDim(count, 0))
        return mismatch();
      wanted[inferred] = n.emit.dim(0);
    } else {
      std::optional<int64_t> total = constantDim(count), part = constantDim(known);
      if (total && part && *total % *part)
        return mismatch();
      std::optional<Dim> rest = quotientOf(n.emit.context, x.shape, others);
      if (!rest)
        return n.unsupported("the -1 of shape " + n.emit.describe(wanted) + " cannot be computed from " +
                             n.emit.describe(x) + "; fix dims with --dim");
      wanted[inferred] = n.emit.simplify(*rest);
    }
  } else if (count != known && constantDim(count) && constantDim(known)) {
    return mismatch();
  }
  VMPACK_CHECK(n.checkShape(wanted));
  n.output(n.emit.reshape(x, wanted));
  return llvm::Error::success();
}

static llvm::Error flatten(Node &n) {
  const Tensor &x = n.input(0);
  int64_t axis = n.integer("axis", 1);
  if (axis < -x.rank() || axis > x.rank())
    return n.invalid("axis " + llvm::Twine(axis) + " is out of range for rank " + llvm::Twine(x.rank()));
  axis = axis < 0 ? axis + x.rank() : axis;
  llvm::ArrayRef<Dim> shape = x.shape;
  n.output(n.emit.reshape(x, {n.emit.productOf(shape.take_front(axis)), n.emit.productOf(shape.drop_front(axis))}));
  return llvm::Error::success();
}

/// Axes: an attribute, from opset 13 on an input.
static llvm::Expected<std::optional<Ints>> readAxes(Node &n) {
  if (n.hasInput(1)) {
    VMPACK_TRY(Ints axes, n.knownIntegers(1));
    return std::optional(axes);
  }
  if (n.hasAttribute("axes"))
    return std::optional(n.integers("axes"));
  return std::optional<Ints>();
}

static llvm::Error squeeze(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_TRY(std::optional<Ints> given, readAxes(n));
  VMPACK_TRY(Ints axes, n.axes(given.value_or(Ints()), x.rank()));
  Dims shape;
  for (auto [i, size] : llvm::enumerate(x.shape)) {
    bool named = llvm::is_contained(axes, static_cast<int64_t>(i));
    if (named && !isDim(size, 1))
      return n.invalid("axis " + llvm::Twine(i) + " of shape " + n.emit.describe(x) + " is not 1");
    if (!(given ? named : isDim(size, 1)))
      shape.push_back(size);
  }
  n.output(n.emit.reshape(x, shape));
  return llvm::Error::success();
}

static llvm::Error unsqueeze(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_TRY(std::optional<Ints> given, readAxes(n));
  if (!given)
    return n.invalid("the axes are missing");
  int64_t rank = x.rank() + given->size();
  VMPACK_TRY(Ints axes, n.axes(*given, rank));
  Dims shape;
  for (int64_t i = 0, next = 0; i < rank; ++i)
    shape.push_back(llvm::is_contained(axes, i) ? n.emit.dim(1) : x.shape[next++]);
  VMPACK_CHECK(n.checkShape(shape));
  n.output(n.emit.reshape(x, shape));
  return llvm::Error::success();
}

static llvm::Error transpose(Node &n) {
  const Tensor &x = n.input(0);
  Ints reversed;
  for (int64_t axis = x.rank(); axis-- > 0;)
    reversed.push_back(axis);
  Ints permutation = n.integers("perm", reversed), sorted = permutation;
  llvm::sort(sorted);
  std::reverse(reversed.begin(), reversed.end());
  if (sorted != reversed)
    return n.invalid("attribute 'perm' is no permutation of rank " + llvm::Twine(x.rank()));
  n.output(n.emit.transpose(x, permutation));
  return llvm::Error::success();
}

static llvm::Error concat(Node &n) {
  VMPACK_CHECK(n.checkSameElem());
  int64_t rank = n.input(0).rank();
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", 1), rank));
  for (const Tensor &part : n.inputs) {
    if (!part || part.rank() != rank)
      return n.invalid("the inputs have different ranks");
    for (int64_t i = 0; i < rank; ++i)
      if (i != axis && part.shape[i] != n.input(0).shape[i])
        return n.invalid("shapes " + n.emit.describe(n.input(0)) + " and " + n.emit.describe(part) +
                         " differ outside of axis " + llvm::Twine(axis));
  }
  Dims shape = n.input(0).shape;
  for (const Tensor &part : llvm::drop_begin(n.inputs))
    shape[axis] = shape[axis] + part.shape[axis];
  VMPACK_CHECK(n.checkShape(shape));
  n.output(n.emit.concat(n.inputs, axis));
  return llvm::Error::success();
}

static llvm::Error expand(Node &n) {
  VMPACK_TRY(Dims shape, n.knownDims(1));
  VMPACK_CHECK(n.checkShape(shape));
  auto joint = n.emit.broadcast({n.input(0).shape, shape});
  if (!joint)
    return n.invalid(llvm::toString(joint.takeError()));
  VMPACK_CHECK(n.checkShape(*joint));
  VMPACK_TRY(Tensor result, n.emit.expand(n.input(0), shape));
  n.output(result);
  return llvm::Error::success();
}

/// [a, b] tiled by [m, n]: expand [1, a, 1, b] to [m, a, n, b] and join.
static llvm::Error tile(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_TRY(Dims repeats, n.knownDims(1));
  if (repeats.size() != x.shape.size())
    return n.invalid("there are " + llvm::Twine(repeats.size()) + " repeats for rank " + llvm::Twine(x.rank()));
  VMPACK_CHECK(n.checkShape(repeats));
  Dims split, wide, joint;
  for (auto [size, times] : llvm::zip_equal(x.shape, repeats)) {
    joint.push_back(n.emit.productOf({size, times}));
    if (!isDim(times, 1)) {
      split.push_back(n.emit.dim(1));
      wide.push_back(times);
    }
    split.push_back(size);
    wide.push_back(size);
  }
  VMPACK_CHECK(n.checkShape(joint));
  Tensor copies =
      n.emit.pointwiseTo(x.elem, wide, n.emit.reshape(x, split), [](ScalarBuilder &, Scalars v) { return v[0]; });
  n.output(n.emit.reshape(copies, joint));
  return llvm::Error::success();
}

static llvm::Error range(Node &n) {
  VMPACK_CHECK(n.checkSameElem());
  for (size_t i = 0; i < 3; ++i)
    if (!isDim(n.emit.productOf(n.input(i).shape), 1))
      return n.invalid("input " + llvm::Twine(i) + " is no scalar");
  Elem elem = n.input(0).elem;
  Dim count;
  if (n.input(0).constant && n.input(1).constant && n.input(2).constant) {
    Number start = readElement(n.input(0), 0), limit = readElement(n.input(1), 0), delta = readElement(n.input(2), 0);
    if (isFloat(elem) ? delta.real == 0 : delta.integer == 0)
      return n.invalid("the step is 0");
    double steps = isFloat(elem) ? (limit.real - start.real) / delta.real
                                 : (static_cast<double>(limit.integer) - static_cast<double>(start.integer)) /
                                       static_cast<double>(delta.integer);
    if (!(steps < 1e15))
      return n.invalid("the range has no end");
    count = n.emit.dim(static_cast<int64_t>(std::max(0.0, std::ceil(steps))));
  } else { // limit - start steps of 1, over symbolic dims
    if (!isInteger(elem) || !n.input(2).constant || readElement(n.input(2), 0).integer != 1)
      return n.unsupported("a range with a step but 1 must be known when the model is compiled");
    Tensor difference = n.emit.pointwiseTo(elem, {}, {n.emit.reshape(n.input(1), {}), n.emit.reshape(n.input(0), {})},
                                           [](ScalarBuilder &, Scalars x) { return x[0] - x[1]; });
    if (!difference.elements)
      return n.unsupported("the bounds of the range must be known when the model is compiled");
    count = difference.elements->front();
  }
  VMPACK_CHECK(n.checkShape(count));
  Tensor start = n.emit.reshape(n.input(0), {}), delta = n.emit.reshape(n.input(2), {});
  n.output(n.emit.generate(elem, count, [&](ScalarBuilder &s, Scalars i) {
    return s.load(start, {}) + s.cast(i[0], elem) * s.load(delta, {});
  }));
  return llvm::Error::success();
}

static llvm::Error depthToSpace(Node &n) {
  VMPACK_CHECK(n.checkRank(0, 4, 4));
  const Tensor &x = n.input(0);
  int64_t block = n.integer("blocksize", 0);
  std::string mode = n.string("mode", "DCR");
  std::optional<int64_t> channels = constantDim(x.shape[1]);
  if (block < 1 || block > 65536 || !channels || *channels % (block * block))
    return n.invalid("blocksize " + llvm::Twine(block) + " does not divide the channels of " + n.emit.describe(x));
  Emitter &e = n.emit;
  Dim b = e.dim(block), depth = e.dim(*channels / (block * block));
  Tensor y = mode == "CRD"
                 ? e.transpose(e.reshape(x, {x.shape[0], depth, b, b, x.shape[2], x.shape[3]}), {0, 1, 4, 2, 5, 3})
                 : e.transpose(e.reshape(x, {x.shape[0], b, b, depth, x.shape[2], x.shape[3]}), {0, 3, 4, 1, 5, 2});
  n.output(e.reshape(y, {x.shape[0], depth, e.productOf({x.shape[2], b}), e.productOf({x.shape[3], b})}));
  return llvm::Error::success();
}

static llvm::Error spaceToDepth(Node &n) {
  VMPACK_CHECK(n.checkRank(0, 4, 4));
  const Tensor &x = n.input(0);
  int64_t block = n.integer("blocksize", 0);
  std::optional<Dim> height, width;
  Emitter &e = n.emit;
  if (block >= 1 && block <= 65536) {
    height = quotientOf(e.context, x.shape[2], e.dim(block));
    width = quotientOf(e.context, x.shape[3], e.dim(block));
  }
  if (!height || !width || e.productOf({*height, e.dim(block)}) != x.shape[2] ||
      e.productOf({*width, e.dim(block)}) != x.shape[3])
    return n.invalid("blocksize " + llvm::Twine(block) + " does not divide the image of " + e.describe(x));
  Dim b = e.dim(block);
  Tensor y = e.transpose(e.reshape(x, {x.shape[0], x.shape[1], *height, b, *width, b}), {0, 3, 5, 1, 2, 4});
  n.output(e.reshape(y, {x.shape[0], e.productOf({x.shape[1], b, b}), *height, *width}));
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::shapeOps() {
  static const Op ops[] = {
      {"Identity", 1, 1, 1, Types::All, identity, false},
      {"Dropout", 1, 1, 3, Types::All, dropout, false},
      {"Constant", 1, 0, 0, Types::All, constant, false},
      {"ConstantOfShape", 9, 1, 1, Types::Integer, constantOfShape, false},
      {"Shape", 1, 1, 1, Types::All, shapeOf, false},
      {"Size", 1, 1, 1, Types::All, sizeOf, false},
      {"Reshape", 1, 1, 2, Types::All, reshape, false},
      {"Flatten", 1, 1, 1, Types::All, flatten, false},
      {"Squeeze", 1, 1, 2, Types::All, squeeze, false},
      {"Unsqueeze", 1, 1, 2, Types::All, unsqueeze, false},
      {"Transpose", 1, 1, 1, Types::All, transpose, false},
      {"Concat", 4, 1, -1, Types::All, concat, false},
      {"Expand", 8, 2, 2, Types::All, expand, false},
      {"Tile", 6, 2, 2, Types::All, tile, false},
      {"Range", 11, 3, 3, Types::Numeric, range},
      {"DepthToSpace", 1, 1, 1, Types::All, depthToSpace, false},
      {"SpaceToDepth", 1, 1, 1, Types::All, spaceToDepth, false},
  };
  return ops;
}
