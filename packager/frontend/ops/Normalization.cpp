// Normalizations. Statistics are reductions; what is left is one element-wise op.
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

/// A [C] vector as it broadcasts over N, C, spatial….
static Tensor perChannel(Emitter &emit, const Tensor &vector, int64_t rank) {
  Dims shape(std::max<int64_t>(rank - 1, 1), emit.dim(1));
  shape[0] = vector.shape[0];
  return emit.reshape(vector, shape);
}

static llvm::Error checkVector(Node &n, size_t index, Dim size) {
  VMPACK_CHECK(n.checkRank(index, 1, 1));
  if (n.input(index).shape[0] != size)
    return n.invalid("input " + llvm::Twine(index) + " has shape " + n.emit.describe(n.input(index)) +
                     " when it should be " + n.emit.describe(Dims{size}));
  return llvm::Error::success();
}

/// y = x * s + t with s = scale / sqrt(var + epsilon), t = bias - mean * s: both fold when the parameters are constant.
static llvm::Error batchNormalization(Node &n) {
  Tensor x = n.input(0);
  VMPACK_CHECK(n.checkRank(0, 1));
  bool trains = n.opset >= 14 ? n.integer("training_mode", 0)
                : n.opset < 7 ? !n.integer("is_test", 1)
                              : n.outputCount() > 1;
  if (trains)
    return n.unsupported("training mode is not supported");
  if (n.opset < 9 && !n.integer("spatial", 1))
    return n.unsupported("'spatial' = 0 is not supported");
  Dim channels = x.rank() > 1 ? x.shape[1] : n.emit.dim(1);
  for (size_t i = 1; i < 5; ++i)
    VMPACK_CHECK(checkVector(n, i, channels));
  Emitter &e = n.emit;
  double epsilon = n.real("epsilon", 1e-5);
  Elem elem = x.elem;
  Tensor scale =
      e.pointwiseTo(elem, Dims{channels}, {e.cast(n.input(1), elem), e.cast(n.input(4), elem)},
                    [&](ScalarBuilder &s, Scalars v) { return v[0] / s.function(Function::Sqrt, v[1] + epsilon); });
  Tensor shift = e.pointwiseTo(elem, Dims{channels}, {e.cast(n.input(2), elem), e.cast(n.input(3), elem), scale},
                               [&](ScalarBuilder &, Scalars v) { return v[0] - v[1] * v[2]; });
  n.output(e.pointwiseTo(elem, x.shape, {x, perChannel(e, scale, x.rank()), perChannel(e, shift, x.rank())},
                         [](ScalarBuilder &, Scalars v) { return v[0] * v[1] + v[2]; }));
  return llvm::Error::success();
}

namespace {
struct Statistics {
  Tensor mean, inverse; ///< inverse standard deviation; both with reduced dims kept as 1
};
} // namespace

static Statistics statisticsOf(Emitter &emit, const Tensor &x, llvm::ArrayRef<int64_t> axes, double epsilon) {
  Dims sizes;
  for (int64_t axis : axes)
    sizes.push_back(x.shape[axis]);
  Dim count = emit.productOf(sizes);
  auto over = [&](ScalarBuilder &s, Scalar v) { return v / s.cast(s.position(count), v.elem); };
  Tensor sum = emit.reduce(x, axes, true, x.elem, Number{}, [](ScalarBuilder &, Scalar m, Scalar v) { return m + v; });
  Tensor mean = emit.pointwiseTo(x.elem, sum.shape, sum, [&](ScalarBuilder &s, Scalars v) { return over(s, v[0]); });
  Tensor centered =
      emit.pointwiseTo(x.elem, x.shape, {x, mean}, [](ScalarBuilder &, Scalars v) { return v[0] - v[1]; });
  Tensor squares = emit.reduce(centered, axes, true, x.elem, Number{},
                               [](ScalarBuilder &, Scalar m, Scalar v) { return m + v * v; });
  Tensor inverse = emit.pointwiseTo(x.elem, sum.shape, squares, [&](ScalarBuilder &s, Scalars v) {
    return 1.0 / s.function(Function::Sqrt, over(s, v[0]) + epsilon);
  });
  return {mean, inverse};
}

/// (x - mean) * inverse, then * scale + bias where they are given.
static Tensor normalize(Emitter &emit, const Tensor &x, const Statistics &statistics, Tensor scale, Tensor bias) {
  llvm::SmallVector<Tensor> operands{x, statistics.mean, statistics.inverse};
  if (scale)
    operands.push_back(scale);
  if (bias)
    operands.push_back(bias);
  bool scaled = static_cast<bool>(scale), shifted = static_cast<bool>(bias);
  return emit.pointwiseTo(x.elem, x.shape, operands, [&](ScalarBuilder &, Scalars v) {
    Scalar y = (v[0] - v[1]) * v[2];
    if (scaled)
      y = y * v[3];
    return shifted ? y + v.back() : y;
  });
}

static llvm::Error checkFits(Node &n, size_t index, const Tensor &x) {
  auto shape = n.emit.broadcast({x.shape, n.input(index).shape});
  if (!shape)
    return n.invalid(llvm::toString(shape.takeError()));
  if (*shape != x.shape)
    return n.invalid("input " + llvm::Twine(index) + " of shape " + n.emit.describe(n.input(index)) +
                     " does not broadcast to " + n.emit.describe(x));
  return llvm::Error::success();
}

static llvm::Error layerNormalization(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_CHECK(n.checkSameElem());
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", -1), x.rank()));
  VMPACK_CHECK(checkFits(n, 1, x));
  if (n.hasInput(2))
    VMPACK_CHECK(checkFits(n, 2, x));
  Ints axes;
  for (int64_t i = axis; i < x.rank(); ++i)
    axes.push_back(i);
  Statistics statistics = statisticsOf(n.emit, x, axes, n.real("epsilon", 1e-5));
  n.output(normalize(n.emit, x, statistics, n.input(1), n.hasInput(2) ? n.input(2) : Tensor()));
  if (n.outputCount() > 1)
    n.output(statistics.mean);
  if (n.outputCount() > 2)
    n.output(statistics.inverse);
  return llvm::Error::success();
}

static llvm::Error rmsNormalization(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_CHECK(n.checkSameElem());
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", -1), x.rank()));
  VMPACK_CHECK(checkFits(n, 1, x));
  Ints axes;
  Dims sizes;
  for (int64_t i = axis; i < x.rank(); ++i) {
    axes.push_back(i);
    sizes.push_back(x.shape[i]);
  }
  double epsilon = n.real("epsilon", 1e-5);
  Dim count = n.emit.productOf(sizes);
  Tensor squares =
      n.emit.reduce(x, axes, true, x.elem, Number{}, [](ScalarBuilder &, Scalar m, Scalar v) { return m + v * v; });
  Tensor inverse = n.emit.pointwiseTo(x.elem, squares.shape, squares, [&](ScalarBuilder &s, Scalars v) {
    return 1.0 / s.function(Function::Sqrt, v[0] / s.cast(s.position(count), x.elem) + epsilon);
  });
  n.output(n.emit.pointwiseTo(x.elem, x.shape, {x, inverse, n.input(1)},
                              [](ScalarBuilder &, Scalars v) { return v[0] * v[1] * v[2]; }));
  return llvm::Error::success();
}

static llvm::Error instanceNormalization(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_CHECK(n.checkSameElem());
  VMPACK_CHECK(n.checkRank(0, 3));
  VMPACK_CHECK(checkVector(n, 1, x.shape[1]));
  VMPACK_CHECK(checkVector(n, 2, x.shape[1]));
  Ints axes;
  for (int64_t i = 2; i < x.rank(); ++i)
    axes.push_back(i);
  Statistics statistics = statisticsOf(n.emit, x, axes, n.real("epsilon", 1e-5));
  n.output(normalize(n.emit, x, statistics, perChannel(n.emit, n.input(1), x.rank()),
                     perChannel(n.emit, n.input(2), x.rank())));
  return llvm::Error::success();
}

/// Groups of channels are normalized together; scale and bias are per channel from opset 21, per group before.
static llvm::Error groupNormalization(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_CHECK(n.checkSameElem());
  VMPACK_CHECK(n.checkRank(0, 2));
  int64_t groups = n.integer("num_groups", 0);
  std::optional<int64_t> channels = constantDim(x.shape[1]);
  if (!channels || groups < 1 || *channels % groups)
    return n.invalid(llvm::Twine(groups) + " groups do not divide the channels of " + n.emit.describe(x));
  Emitter &e = n.emit;
  Dim size = e.dim(*channels / groups), spatial = e.productOf(llvm::ArrayRef<Dim>(x.shape).drop_front(2));
  Tensor split = e.reshape(x, {x.shape[0], e.dim(groups), size, spatial});
  Statistics statistics = statisticsOf(e, split, {2, 3}, n.real("epsilon", 1e-5));
  bool perGroup = n.opset < 21;
  for (size_t i = 1; i < 3; ++i)
    VMPACK_CHECK(checkVector(n, i, e.dim(perGroup ? groups : *channels)));
  Dims shape{e.dim(groups), perGroup ? e.dim(1) : size, e.dim(1)};
  Tensor y = normalize(e, split, statistics, e.reshape(n.input(1), shape), e.reshape(n.input(2), shape));
  n.output(e.reshape(y, x.shape));
  return llvm::Error::success();
}

static llvm::Error meanVarianceNormalization(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_TRY(Ints axes, n.axes(n.integers("axes", {0, 2, 3}), x.rank()));
  n.output(normalize(n.emit, x, statisticsOf(n.emit, x, axes, 1e-9), {}, {}));
  return llvm::Error::success();
}

static llvm::Error lpNormalization(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", -1), x.rank()));
  int64_t p = n.integer("p", 2);
  if (p != 1 && p != 2)
    return n.invalid("attribute 'p' is " + llvm::Twine(p) + " when it should be 1 or 2");
  Tensor sum = n.emit.reduce(x, axis, true, x.elem, Number{}, [&](ScalarBuilder &s, Scalar m, Scalar v) {
    return m + (p == 1 ? s.absolute(v) : v * v);
  });
  n.output(n.emit.pointwiseTo(x.elem, x.shape, {x, sum}, [&](ScalarBuilder &s, Scalars v) {
    Scalar norm = p == 1 ? v[1] : s.function(Function::Sqrt, v[1]);
    return s.select(norm == 0.0, s.constant(v[0].elem, 0), v[0] / norm);
  }));
  return llvm::Error::success();
}

/// x / (bias + alpha/size * sum of squares over neighbouring channels) ^ beta: the sum is a pool along the channels.
static llvm::Error lrn(Node &n) {
  const Tensor &x = n.input(0);
  VMPACK_CHECK(n.checkRank(0, 2));
  int64_t size = n.integer("size", 0);
  if (size < 1 || size > INT32_MAX)
    return n.invalid("attribute 'size' is " + llvm::Twine(size));
  double alpha = n.real("alpha", 1e-4), beta = n.real("beta", 0.75), bias = n.real("bias", 1);
  Emitter &e = n.emit;
  Tensor squares = e.pointwiseTo(x.elem, x.shape, x, [](ScalarBuilder &, Scalars v) { return v[0] * v[0]; });
  Dim area = e.productOf(llvm::ArrayRef<Dim>(x.shape).drop_front(2)), none = e.dim(0);
  Tensor columns = e.reshape(squares, {x.shape[0], x.shape[1], e.dim(1), area}); // N, C as H, 1 as W, area as C
  columns = e.pad(columns, {none, e.dim((size - 1) / 2), none, none}, {none, e.dim(size / 2), none, none}, Number{});
  Tensor sums =
      e.pool(columns, Window{{size, 1}, {1, 1}, {1, 1}, {}, {}}, {x.shape[0], x.shape[1], e.dim(1), area}, false);
  n.output(e.pointwiseTo(x.elem, x.shape, {x, e.reshape(sums, x.shape)}, [&](ScalarBuilder &s, Scalars v) {
    return v[0] / s.power(v[1] * (alpha / static_cast<double>(size)) + bias, s.constant(v[0].elem, beta));
  }));
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::normalizationOps() {
  static const Op ops[] = {
      {"BatchNormalization", 1, 5, 5, Types::Float, batchNormalization},
      {"LayerNormalization", 17, 2, 3, Types::Float, layerNormalization},
      {"LayerNormalization", 1, 2, 3, Types::Float, layerNormalization, true, "", 16}, // exported ahead of the standard
      {"RMSNormalization", 23, 2, 2, Types::Float, rmsNormalization},
      {"InstanceNormalization", 1, 3, 3, Types::Float, instanceNormalization},
      {"GroupNormalization", 18, 3, 3, Types::Float, groupNormalization},
      {"MeanVarianceNormalization", 9, 1, 1, Types::Float, meanVarianceNormalization},
      {"LpNormalization", 1, 1, 1, Types::Float, lpNormalization},
      {"LRN", 1, 1, 1, Types::Float, lrn},
  };
  return ops;
}
