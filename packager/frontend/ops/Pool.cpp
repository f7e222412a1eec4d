// Pools: NHWC inside, between transposes.
#include "packager/frontend/ops/Window.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

/// One pool of channels-last x (padded), 2-D or 3-D. A 3-D window is a window over H and W, then one over D.
static Tensor poolImage(Emitter &emit, const Tensor &x, const Window &window, llvm::ArrayRef<Dim> spatial,
                        bool maximum) {
  if (x.rank() == 4)
    return emit.pool(x, window, {x.shape[0], spatial[0], spatial[1], x.shape[3]}, maximum);
  llvm::ArrayRef<int64_t> kernel = window.kernel, strides = window.strides, dilations = window.dilations;
  Window flat{Ints(kernel.drop_front()), Ints(strides.drop_front()), Ints(dilations.drop_front()), {}, {}};
  Window deep{{kernel[0], 1}, {strides[0], 1}, {dilations[0], 1}, {}, {}};
  Dim slabs = emit.productOf({x.shape[0], x.shape[1]}), area = emit.productOf({spatial[1], spatial[2]});
  Tensor plane = emit.pool(emit.reshape(x, {slabs, x.shape[2], x.shape[3], x.shape[4]}), flat,
                           {slabs, spatial[1], spatial[2], x.shape[4]}, maximum);
  Tensor column = emit.pool(emit.reshape(plane, {x.shape[0], x.shape[1], area, x.shape[4]}), deep,
                            {x.shape[0], spatial[0], area, x.shape[4]}, maximum);
  return emit.reshape(column, {x.shape[0], spatial[0], spatial[1], spatial[2], x.shape[4]});
}

static Tensor padSpatial(Emitter &emit, const Tensor &x, const Window &window, Number number) {
  Dims before{emit.dim(0)}, after{emit.dim(0)};
  before.append(window.padBefore.begin(), window.padBefore.end());
  after.append(window.padAfter.begin(), window.padAfter.end());
  before.push_back(emit.dim(0));
  after.push_back(emit.dim(0));
  return emit.pad(x, before, after, number);
}

namespace {
struct Pool {
  Window window; ///< as the attributes say
  Window image;  ///< with H for 1-D
  Dims spatial, imageSpatial;
  Dims shape; ///< of the result, channels first
};
} // namespace

static llvm::Expected<Pool> readPool(Node &n) {
  VMPACK_CHECK(n.checkRank(0, 3));
  const Tensor &x = n.input(0);
  if (x.rank() > 5)
    return n.unsupported("a pool of rank " + llvm::Twine(x.rank()) + " is not supported");
  Pool pool;
  VMPACK_TRY(pool.window, readWindow(n, x, n.integers("kernel_shape"), n.integer("ceil_mode", 0)));
  VMPACK_TRY(pool.spatial, slide(n, x, pool.window));
  pool.shape = {x.shape[0], x.shape[1]};
  pool.shape.append(pool.spatial);
  VMPACK_CHECK(n.checkShape(pool.shape));
  pool.image = pool.window;
  addHeight(n.emit, pool.image);
  pool.imageSpatial = pool.spatial;
  if (pool.spatial.size() == 1)
    pool.imageSpatial.insert(pool.imageSpatial.begin(), n.emit.dim(1));
  return pool;
}

static llvm::Error maxPool(Node &n) {
  VMPACK_TRY(Pool pool, readPool(n));
  if (n.hasOutput(1))
    return n.unsupported("the output of indices is not supported");
  const Tensor &x = n.input(0);
  Number least = ScalarBuilder(n.emit.context, 0).extreme(x.elem, true).number;
  Tensor image = padSpatial(n.emit, toChannelsLast(n.emit, x), pool.image, least);
  n.output(toChannelsFirst(n.emit, poolImage(n.emit, image, pool.image, pool.imageSpatial, true), pool.shape));
  return llvm::Error::success();
}

/// How many elements of the input (and, when they count, of the declared paddings) each window covers along one axis.
static Tensor coverage(Emitter &emit, const Window &window, size_t i, Dim size, Dim outputs, int64_t low,
                       int64_t high) {
  return emit.generate(Elem::I64, outputs, [&](ScalarBuilder &s, Scalars at) {
    Scalar start = s.cast(at[0], Elem::I64) * static_cast<double>(window.strides[i]) -
                   s.cast(s.position(window.padBefore[i]), Elem::I64);
    Scalar end = s.cast(s.position(size), Elem::I64) + static_cast<double>(high), count = s.integer(Elem::I64, 0);
    for (int64_t k = 0; k < window.kernel[i]; ++k) {
      Scalar position = start + static_cast<double>(k * window.dilations[i]);
      Scalar inside = s.bitAnd(position >= static_cast<double>(-low), position < end);
      count = count + s.cast(inside, Elem::I64);
    }
    return count;
  });
}

static llvm::Error averagePool(Node &n) {
  VMPACK_TRY(Pool pool, readPool(n));
  Emitter &e = n.emit;
  const Tensor &x = n.input(0);
  bool countPads = n.integer("count_include_pad", 0);
  Tensor image = padSpatial(e, toChannelsLast(e, x), pool.image, Number{});
  Tensor sum = poolImage(e, image, pool.image, pool.imageSpatial, false);
  // The divisor is a product over the axes; a constant one is folded into a scale.
  int64_t window = 1;
  bool isUniform = true;
  Ints declared = n.integers("pads", Ints(2 * pool.window.kernel.size(), 0));
  bool automatic = n.string("auto_pad", "NOTSET") != "NOTSET";
  llvm::SmallVector<Tensor> operands{sum};
  for (size_t i = 0; i < pool.window.kernel.size(); ++i) {
    std::optional<int64_t> before = constantDim(pool.window.padBefore[i]), after = constantDim(pool.window.padAfter[i]);
    window *= pool.window.kernel[i];
    int64_t low = countPads ? (automatic ? before.value_or(0) : declared[i]) : 0;
    int64_t high = countPads ? (automatic ? after.value_or(0) : declared[i + pool.window.kernel.size()]) : 0;
    if (before == low && after == high)
      continue; // every window lies inside of what counts
    isUniform = false;
    window /= pool.window.kernel[i];
    Tensor counts = coverage(e, pool.window, i, x.shape[2 + i], pool.spatial[i], low, high);
    Dims shape(pool.window.kernel.size() - i + 1, e.dim(1));
    shape[0] = pool.spatial[i];
    operands.push_back(e.reshape(e.cast(counts, x.elem), shape));
  }
  Tensor mean = e.pointwiseTo(x.elem, sum.shape, operands, [&](ScalarBuilder &s, Scalars v) {
    if (isUniform)
      return v[0] * (1.0 / static_cast<double>(window));
    Scalar divisor = v[1];
    for (Scalar factor : v.drop_front(2))
      divisor = divisor * factor;
    return v[0] / (divisor * static_cast<double>(window));
  });
  n.output(toChannelsFirst(e, mean, pool.shape));
  return llvm::Error::success();
}

static llvm::Error lpPool(Node &n) {
  VMPACK_TRY(Pool pool, readPool(n));
  double p = n.opset < 2 ? n.real("p", 2) : static_cast<double>(n.integer("p", 2));
  if (p < 1)
    return n.invalid("attribute 'p' is " + llvm::Twine(static_cast<int64_t>(p)));
  Emitter &e = n.emit;
  const Tensor &x = n.input(0);
  Tensor powers = e.pointwiseTo(x.elem, x.shape, x, [&](ScalarBuilder &s, Scalars v) {
    return s.power(s.absolute(v[0]), s.constant(v[0].elem, p));
  });
  Tensor image = padSpatial(e, toChannelsLast(e, powers), pool.image, Number{});
  Tensor sum = poolImage(e, image, pool.image, pool.imageSpatial, false);
  Tensor norm = e.pointwiseTo(x.elem, sum.shape, sum,
                              [&](ScalarBuilder &s, Scalars v) { return s.power(v[0], s.constant(v[0].elem, 1 / p)); });
  n.output(toChannelsFirst(e, norm, pool.shape));
  return llvm::Error::success();
}

/// Global pools are reductions over all spatial axes.
static llvm::Expected<Ints> spatialAxes(Node &n) {
  VMPACK_CHECK(n.checkRank(0, 2));
  Ints axes;
  for (int64_t axis = 2; axis < n.input(0).rank(); ++axis)
    axes.push_back(axis);
  return axes;
}

static llvm::Error globalMaxPool(Node &n) {
  VMPACK_TRY(Ints axes, spatialAxes(n));
  const Tensor &x = n.input(0);
  Number least = ScalarBuilder(n.emit.context, 0).extreme(x.elem, true).number;
  n.output(n.emit.reduce(x, axes, true, x.elem, least,
                         [](ScalarBuilder &s, Scalar m, Scalar v) { return s.maximum(m, v); }));
  return llvm::Error::success();
}

static llvm::Error globalAveragePool(Node &n) {
  VMPACK_TRY(Ints axes, spatialAxes(n));
  const Tensor &x = n.input(0);
  Dim count = n.emit.productOf(llvm::ArrayRef<Dim>(x.shape).drop_front(2));
  Tensor sum =
      n.emit.reduce(x, axes, true, x.elem, Number{}, [](ScalarBuilder &, Scalar m, Scalar v) { return m + v; });
  n.output(n.emit.pointwiseTo(x.elem, sum.shape, sum, [&](ScalarBuilder &s, Scalars v) {
    return v[0] / s.cast(s.position(count), v[0].elem);
  }));
  return llvm::Error::success();
}

static llvm::Error globalLpPool(Node &n) {
  VMPACK_TRY(Ints axes, spatialAxes(n));
  const Tensor &x = n.input(0);
  double p = static_cast<double>(n.integer("p", 2));
  if (p < 1)
    return n.invalid("attribute 'p' is below 1");
  Tensor sum = n.emit.reduce(x, axes, true, x.elem, Number{}, [&](ScalarBuilder &s, Scalar m, Scalar v) {
    return m + s.power(s.absolute(v), s.constant(v.elem, p));
  });
  n.output(n.emit.pointwiseTo(x.elem, sum.shape, sum, [&](ScalarBuilder &s, Scalars v) {
    return s.power(v[0], s.constant(v[0].elem, 1 / p));
  }));
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::poolOps() {
  static const Op ops[] = {
      {"MaxPool", 1, 1, 1, Types::Numeric, maxPool},
      {"AveragePool", 1, 1, 1, Types::Float, averagePool},
      {"LpPool", 1, 1, 1, Types::Float, lpPool},
      {"GlobalMaxPool", 1, 1, 1, Types::Float, globalMaxPool},
      {"GlobalAveragePool", 1, 1, 1, Types::Float, globalAveragePool},
      {"GlobalLpPool", 1, 1, 1, Types::Float, globalLpPool},
  };
  return ops;
}
