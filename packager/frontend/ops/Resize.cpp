// Resize and Upsample, axis by axis. For every axis two tables are generated, which fold when the sizes are fixed:
//
//   taps    [output size, T]  which input elements an output element is made of
//   weights [output size, T]  and how much of each
#include "packager/frontend/Node.h"

#include <cmath>

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

namespace {
struct Axis {
  Dim in, out;
  std::optional<double> scale; ///< when given as a number; otherwise out / in
  double start = 0, end = 1;   ///< region of interest
};

struct Method {
  std::string mode, coordinates, nearest;
  double cubic = -0.75, extrapolation = 0;
  bool excludeOutside = false, antialias = false;
};
} // namespace

static Scalar asReal(ScalarBuilder &s, Dim dim) { return s.cast(s.position(dim), Elem::F64); }

static Scalar scaleOf(ScalarBuilder &s, const Axis &axis) {
  return axis.scale ? s.real(Elem::F64, *axis.scale) : asReal(s, axis.out) / asReal(s, axis.in);
}

/// Where output element `i` lies in the input.
static Scalar coordinate(ScalarBuilder &s, const Method &method, const Axis &axis, Scalar i) {
  Scalar scale = scaleOf(s, axis), in = asReal(s, axis.in), zero = s.real(Elem::F64, 0);
  // The standard's output length is not rounded when it comes from a scale.
  Scalar out = axis.scale ? scale * in : asReal(s, axis.out);
  const std::string &mode = method.coordinates;
  if (mode == "asymmetric")
    return i / scale;
  if (mode == "tf_half_pixel_for_nn")
    return (i + 0.5) / scale;
  if (mode == "align_corners")
    return s.select(out == 1.0, zero, i * (in - 1.0) / s.maximum(out - 1.0, s.real(Elem::F64, 1)));
  Scalar centered = (i + 0.5) / scale - 0.5;
  if (mode == "pytorch_half_pixel")
    return s.select(out > 1.0, centered, zero);
  if (mode == "half_pixel_symmetric")
    return in * 0.5 * (1.0 - asReal(s, axis.out) / (scale * in)) + centered;
  if (mode == "tf_crop_and_resize") {
    Scalar step = (in - 1.0) * (axis.end - axis.start) / s.maximum(out - 1.0, s.real(Elem::F64, 1));
    return s.select(out > 1.0, (in - 1.0) * axis.start + i * step, (in - 1.0) * (0.5 * (axis.start + axis.end)));
  }
  return centered; // half_pixel
}

/// The first tap relative to floor(x), and how many there are.
static std::pair<int64_t, int64_t> footprint(const Method &method, double scale) {
  int64_t reach = method.mode == "cubic" ? 2 : 1;
  if (!method.antialias || scale >= 1)
    return {1 - reach, 2 * reach};
  int64_t start = static_cast<int64_t>(std::floor(-static_cast<double>(reach) / scale)) + 1;
  return {start, 2 - 2 * start};
}

/// The weight of a tap at distance `d` (in units of the filter).
static Scalar weightAt(ScalarBuilder &s, const Method &method, Scalar d) {
  Scalar x = s.absolute(d), zero = s.real(Elem::F64, 0);
  if (method.mode != "cubic")
    return s.maximum(1.0 - x, zero);
  double a = method.cubic;
  Scalar near = ((a + 2) * x - (a + 3)) * x * x + 1.0;
  Scalar far = ((a * x - 5 * a) * x + 8 * a) * x - 4 * a;
  return s.select(x <= 1.0, near, s.select(x < 2.0, far, zero));
}

static Scalar clampIndex(ScalarBuilder &s, Scalar at, Scalar in) {
  return s.maximum(s.minimum(at, in - 1.0), s.real(Elem::F64, 0));
}

static Tensor nearestTable(Emitter &emit, const Method &method, const Axis &axis) {
  return emit.generate(Elem::I64, axis.out, [&](ScalarBuilder &s, Scalars i) {
    Scalar x = coordinate(s, method, axis, s.cast(i[0], Elem::F64));
    Scalar at = method.nearest == "floor"               ? s.function(Function::Floor, x)
                : method.nearest == "ceil"              ? s.function(Function::Ceil, x)
                : method.nearest == "round_prefer_ceil" ? s.function(Function::Floor, x + 0.5)
                                                        : s.function(Function::Ceil, x - 0.5);
    return s.cast(clampIndex(s, at, asReal(s, axis.in)), Elem::I64);
  });
}

/// All axes in one op: an element of the output is one of the input.
static Tensor resizeNearest(Emitter &emit, const Tensor &x, const Method &method, llvm::ArrayRef<Axis> axes,
                            llvm::ArrayRef<bool> changed) {
  llvm::SmallVector<Tensor> tables(axes.size());
  Dims shape;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    shape.push_back(axis.out);
    if (changed[i])
      tables[i] = nearestTable(emit, method, axis);
  }
  bool extrapolates = method.coordinates == "tf_crop_and_resize";
  return emit.generate(x.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    llvm::SmallVector<Scalar> from(i);
    Scalar outside = s.integer(Elem::Bool, 0);
    for (auto [axis, table] : llvm::enumerate(tables)) {
      if (!table)
        continue;
      from[axis] = s.cast(s.load(table, i[axis]), Elem::Index);
      if (!extrapolates)
        continue;
      Scalar at = coordinate(s, method, axes[axis], s.cast(i[axis], Elem::F64));
      outside = s.bitOr(outside, s.bitOr(at<0.0, at> asReal(s, axes[axis].in) - 1.0));
    }
    return s.select(outside, s.constant(x.elem, method.extrapolation), s.load(x, from));
  });
}

/// Interpolates along one axis.
static Tensor interpolate(Emitter &emit, const Tensor &x, const Method &method, const Axis &axis, size_t along) {
  std::optional<int64_t> in = constantDim(axis.in), out = constantDim(axis.out);
  double fixed = axis.scale ? *axis.scale : in && out && *in ? static_cast<double>(*out) / static_cast<double>(*in) : 1;
  auto [first, count] = footprint(method, fixed);
  double shrink = method.antialias ? std::min(fixed, 1.0) : 1;
  auto tapAt = [&, first = first](ScalarBuilder &s, Scalar i, int64_t k) {
    Scalar x = coordinate(s, method, axis, s.cast(i, Elem::F64));
    return std::pair(x, s.function(Function::Floor, x) + static_cast<double>(first + k));
  };
  auto rawWeight = [&](ScalarBuilder &s, Scalar i, int64_t k) {
    auto [x, tap] = tapAt(s, i, k);
    Scalar weight = weightAt(s, method, (tap - x) * shrink);
    if (!method.excludeOutside)
      return weight;
    Scalar inside = s.bitAnd(tap >= 0.0, tap < asReal(s, axis.in));
    return s.select(inside, weight, s.real(Elem::F64, 0));
  };
  bool normalizes = method.excludeOutside || shrink < 1;
  Dims single{axis.out};
  llvm::SmallVector<Tensor> taps, weights;
  for (int64_t k = 0; k < count; ++k) {
    taps.push_back(emit.generate(Elem::I64, single, [&](ScalarBuilder &s, Scalars i) {
      return s.cast(clampIndex(s, tapAt(s, i[0], k).second, asReal(s, axis.in)), Elem::I64);
    }));
    weights.push_back(emit.generate(x.elem, single, [&](ScalarBuilder &s, Scalars i) {
      Scalar weight = rawWeight(s, i[0], k);
      if (normalizes) {
        Scalar total = rawWeight(s, i[0], 0);
        for (int64_t other = 1; other < count; ++other)
          total = total + rawWeight(s, i[0], other);
        weight = weight / total;
      }
      return s.cast(weight, x.elem);
    }));
  }
  Dims shape = x.shape;
  shape[along] = axis.out;
  return emit.generate(x.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    Scalar sum = s.constant(x.elem, 0);
    for (int64_t k = 0; k < count; ++k) {
      llvm::SmallVector<Scalar> from(i);
      from[along] = s.cast(s.load(taps[k], i[along]), Elem::Index);
      Scalar term = s.load(x, from) * s.load(weights[k], i[along]);
      sum = k ? sum + term : term;
    }
    if (method.coordinates != "tf_crop_and_resize")
      return sum;
    Scalar at = coordinate(s, method, axis, s.cast(i[along], Elem::F64));
    Scalar outside = s.bitOr(at<0.0, at> asReal(s, axis.in) - 1.0);
    return s.select(outside, s.constant(x.elem, method.extrapolation), sum);
  });
}

/// floor(in * scale) for a symbolic dim, when the scale is whole or one over a whole number.
static llvm::Expected<Dim> scaled(Node &n, Dim in, double scale) {
  if (!(scale > 0) || scale > 1e6)
    return n.invalid("a scale is not between 0 and a million");
  if (std::optional<int64_t> fixed = constantDim(in))
    return n.emit.dim(static_cast<int64_t>(std::floor(static_cast<double>(*fixed) * scale)));
  if (scale == std::floor(scale))
    return n.emit.simplify(in * static_cast<int64_t>(scale));
  if (double inverse = 1 / scale; inverse == std::floor(inverse))
    return n.emit.simplify(in.floorDiv(static_cast<int64_t>(inverse)));
  return n.unsupported("scaling a symbolic dim by a fraction is not supported; fix it with --dim");
}

static llvm::Expected<llvm::SmallVector<double>> knownReals(Node &n, size_t index) {
  if (!n.input(index).constant)
    return n.unsupported("input " + llvm::Twine(index) + " must be known when the model is compiled");
  if (!isFloat(n.input(index).elem))
    return n.invalid("input " + llvm::Twine(index) + " is no float tensor");
  llvm::SmallVector<double> values;
  for (int64_t i = 0; i < n.input(index).constantCount(); ++i)
    values.push_back(readElement(n.input(index), i).real);
  return values;
}

/// One aspect ratio for all axes.
static llvm::Error keepAspect(Node &n, llvm::StringRef policy, llvm::ArrayRef<int64_t> chosen,
                              llvm::SmallVectorImpl<Axis> &axes) {
  std::optional<double> scale;
  for (int64_t i : chosen) {
    std::optional<int64_t> in = constantDim(axes[i].in), out = constantDim(axes[i].out);
    if (!in || !out || *in == 0)
      return n.unsupported("keep_aspect_ratio_policy with symbolic dims is not supported");
    double ratio = static_cast<double>(*out) / static_cast<double>(*in);
    scale = !scale ? ratio : policy == "not_larger" ? std::min(*scale, ratio) : std::max(*scale, ratio);
  }
  for (int64_t i : chosen) {
    axes[i].scale = scale;
    axes[i].out =
        n.emit.dim(static_cast<int64_t>(std::floor(static_cast<double>(*constantDim(axes[i].in)) * *scale + 0.5)));
  }
  return llvm::Error::success();
}

static llvm::Error run(Node &n, const Method &method, llvm::ArrayRef<Axis> axes) {
  Tensor x = n.input(0);
  Dims shape;
  llvm::SmallVector<bool> changed;
  for (auto [i, axis] : llvm::enumerate(axes)) {
    shape.push_back(axis.out);
    changed.push_back(axis.out != axis.in || method.coordinates == "tf_crop_and_resize" || axis.scale.value_or(1) != 1);
    if (isDim(axis.in, 0) && !isDim(axis.out, 0))
      return n.invalid("an empty dim cannot be resized");
  }
  VMPACK_CHECK(n.checkShape(shape));
  if (method.mode == "nearest") {
    n.output(resizeNearest(n.emit, x, method, axes, changed));
    return llvm::Error::success();
  }
  Elem elem = x.elem;
  if (!isFloat(elem))
    x = n.emit.cast(x, Elem::F32);
  for (auto [i, axis] : llvm::enumerate(axes))
    if (changed[i])
      x = interpolate(n.emit, x, method, axis, i);
  n.output(n.emit.cast(x, elem));
  return llvm::Error::success();
}

static llvm::Error checkMethod(Node &n, const Method &method) {
  llvm::StringRef modes[] = {"nearest", "linear", "cubic"};
  llvm::StringRef coordinates[] = {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "align_corners",
                                   "asymmetric", "tf_half_pixel_for_nn", "tf_crop_and_resize"};
  if (!llvm::is_contained(modes, method.mode))
    return n.invalid("attribute 'mode' is '" + method.mode + "'");
  if (!llvm::is_contained(coordinates, method.coordinates))
    return n.invalid("attribute 'coordinate_transformation_mode' is '" + method.coordinates + "'");
  return llvm::Error::success();
}

static llvm::Error resize(Node &n) {
  const Tensor &x = n.input(0);
  bool old = n.opset < 11;
  Method method{n.string("mode", "nearest"),
                old ? "asymmetric" : n.string("coordinate_transformation_mode", "half_pixel"),
                old ? "floor" : n.string("nearest_mode", "round_prefer_floor"),
                n.real("cubic_coeff_a", -0.75),
                n.real("extrapolation_value", 0),
                n.integer("exclude_outside", 0) != 0,
                n.integer("antialias", 0) != 0};
  VMPACK_CHECK(checkMethod(n, method));
  Ints chosen = n.integers("axes");
  for (int64_t &axis : chosen) {
    VMPACK_TRY(axis, n.axis(axis, x.rank()));
  }
  if (chosen.empty())
    for (int64_t axis = 0; axis < x.rank(); ++axis)
      chosen.push_back(axis);
  llvm::SmallVector<Axis> axes;
  for (Dim size : x.shape)
    axes.push_back({size, size, std::nullopt});
  size_t scales = old ? 1 : 2;
  bool hasScales = n.hasInput(scales) && !isDim(n.emit.productOf(n.input(scales).shape), 0);
  if (!hasScales && !n.hasInput(3))
    return n.invalid("there are neither scales nor sizes");
  llvm::SmallVector<double> factors;
  Dims sizes;
  if (hasScales) {
    VMPACK_TRY(factors, knownReals(n, scales));
  } else {
    VMPACK_TRY(sizes, n.knownDims(3));
  }
  if ((hasScales ? factors.size() : sizes.size()) != chosen.size())
    return n.invalid("the scales or sizes are not one an axis");
  for (auto [i, axis] : llvm::enumerate(chosen)) {
    if (hasScales) {
      axes[axis].scale = factors[i];
      VMPACK_TRY(axes[axis].out, scaled(n, x.shape[axis], factors[i]));
    } else {
      axes[axis].out = sizes[i];
    }
  }
  std::string policy = n.string("keep_aspect_ratio_policy", "stretch");
  if (!hasScales && policy != "stretch")
    VMPACK_CHECK(keepAspect(n, policy, chosen, axes));
  if (method.coordinates == "tf_crop_and_resize") {
    if (!n.hasInput(1))
      return n.invalid("the region of interest is missing");
    VMPACK_TRY(auto region, knownReals(n, 1));
    if (region.size() != 2 * chosen.size())
      return n.invalid("the region of interest has " + llvm::Twine(region.size()) + " values");
    for (auto [i, axis] : llvm::enumerate(chosen))
      axes[axis].start = region[i], axes[axis].end = region[i + chosen.size()];
  }
  return run(n, method, axes);
}

static llvm::Error upsample(Node &n) {
  const Tensor &x = n.input(0);
  llvm::SmallVector<double> factors = n.reals("scales");
  if (n.opset >= 9) {
    if (!n.hasInput(1))
      return n.invalid("input 1 is missing");
    VMPACK_TRY(factors, knownReals(n, 1));
  } else if (n.opset < 7) {
    factors = {1, 1, n.real("height_scale", 1), n.real("width_scale", 1)};
  }
  if (factors.size() != x.shape.size())
    return n.invalid("there are " + llvm::Twine(factors.size()) + " scales for rank " + llvm::Twine(x.rank()));
  llvm::SmallVector<Axis> axes;
  for (auto [size, factor] : llvm::zip_equal(x.shape, factors)) {
    VMPACK_TRY(Dim out, scaled(n, size, factor));
    axes.push_back({size, out, factor});
  }
  std::string mode = n.string("mode", "nearest");
  Method method{mode == "bilinear" ? "linear" : mode, "asymmetric", "floor"};
  VMPACK_CHECK(checkMethod(n, method));
  return run(n, method, axes);
}

llvm::ArrayRef<Op> vmpack::frontend::resizeOps() {
  static const Op ops[] = {
      {"Resize", 10, 1, 4, Types::Numeric, resize},
      {"Upsample", 1, 1, 2, Types::Numeric, upsample, true, "", 9},
  };
  return ops;
}
