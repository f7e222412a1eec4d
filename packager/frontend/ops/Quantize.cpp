// Quantized tensors: integers with a scale and a zero point, per tensor or per axis.
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

/// A scale or zero point as it broadcasts to `x`: a scalar, or a vector along an axis.
static llvm::Expected<Tensor> alongAxis(Node &n, const Tensor &parameter, const Tensor &x, int64_t axis) {
  if (isDim(n.emit.productOf(parameter.shape), 1))
    return n.emit.reshape(parameter, {});
  if (parameter.rank() != 1)
    return n.unsupported("blocked scales are not supported");
  VMPACK_TRY(axis, n.axis(axis, x.rank()));
  if (parameter.shape[0] != x.shape[axis])
    return n.invalid("scales of shape " + n.emit.describe(parameter) + " do not fit axis " + llvm::Twine(axis) +
                     " of " + n.emit.describe(x));
  Dims shape(x.rank() - axis, n.emit.dim(1));
  shape[0] = parameter.shape[0];
  return n.emit.reshape(parameter, shape);
}

/// round(x / scale) + zero, saturated to `elem`, for x and scale of one float type.
static Scalar quantized(ScalarBuilder &s, Scalar x, Scalar scale, Scalar zero, Elem elem) {
  Scalar level = s.function(Function::RoundEven, x / scale) + s.cast(zero, x.elem);
  auto bound = [&](bool lowest) { return s.cast(s.extreme(elem, lowest), x.elem); };
  return s.cast(s.minimum(s.maximum(level, bound(true)), bound(false)), elem);
}

static llvm::Error quantizeLinear(Node &n) {
  Tensor x = n.input(0);
  Elem elem = Elem::U8;
  if (n.hasInput(2))
    elem = n.input(2).elem;
  else if (n.hasAttribute("output_dtype"))
    elem = elemOf(static_cast<int>(n.integer("output_dtype", 2)));
  if (!isInteger(elem) || widthOf(elem) > 2)
    return n.unsupported("quantizing to " + nameOf(elem) + " is not supported");
  if (!isFloat(x.elem))
    x = n.emit.cast(x, Elem::F32);
  int64_t axis = n.integer("axis", 1);
  VMPACK_TRY(Tensor scale, alongAxis(n, n.emit.cast(n.input(1), x.elem), x, axis));
  llvm::SmallVector<Tensor> operands{x, scale};
  if (n.hasInput(2)) {
    VMPACK_TRY(Tensor zero, alongAxis(n, n.input(2), x, axis));
    operands.push_back(zero);
  }
  n.output(n.emit.pointwiseTo(elem, x.shape, operands, [&](ScalarBuilder &s, Scalars v) {
    return quantized(s, v[0], v[1], v.size() > 2 ? v[2] : s.integer(elem, 0), elem);
  }));
  return llvm::Error::success();
}

static llvm::Error dequantizeLinear(Node &n) {
  const Tensor &x = n.input(0);
  int64_t axis = n.integer("axis", 1);
  VMPACK_TRY(Tensor scale, alongAxis(n, n.input(1), x, axis));
  llvm::SmallVector<Tensor> operands{x, scale};
  if (n.hasInput(2)) {
    if (n.input(2).elem != x.elem)
      return n.invalid("the zero point's type differs from the input's");
    VMPACK_TRY(Tensor zero, alongAxis(n, n.input(2), x, axis));
    operands.push_back(zero);
  }
  n.output(n.emit.pointwiseTo(scale.elem, x.shape, operands, [&](ScalarBuilder &s, Scalars v) {
    Scalar level = s.cast(v[0], Elem::I32);
    if (v.size() > 2)
      level = level - s.cast(v[2], Elem::I32);
    return s.cast(level, scale.elem) * v[1];
  }));
  return llvm::Error::success();
}

/// Scale and zero point from the range of the input, which always holds 0.
static llvm::Error dynamicQuantizeLinear(Node &n) {
  const Tensor &x = n.input(0);
  Emitter &e = n.emit;
  Ints axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    axes.push_back(axis);
  Tensor high =
      e.reduce(x, axes, false, x.elem, Number{}, [](ScalarBuilder &s, Scalar m, Scalar v) { return s.maximum(m, v); });
  Tensor low =
      e.reduce(x, axes, false, x.elem, Number{}, [](ScalarBuilder &s, Scalar m, Scalar v) { return s.minimum(m, v); });
  Tensor scale =
      e.pointwiseTo(x.elem, {}, {high, low}, [](ScalarBuilder &, Scalars v) { return (v[0] - v[1]) / 255.0; });
  Tensor zero = e.pointwiseTo(Elem::U8, {}, {low, scale}, [](ScalarBuilder &s, Scalars v) {
    Scalar none = s.constant(v[0].elem, 0), level = s.function(Function::RoundEven, (0.0 - v[0]) / v[1]);
    Scalar safe = s.select(v[1] == 0.0, none, s.minimum(s.maximum(level, none), s.constant(v[0].elem, 255)));
    return s.cast(safe, Elem::U8);
  });
  n.output(e.pointwiseTo(Elem::U8, x.shape, {x, scale, zero},
                         [](ScalarBuilder &s, Scalars v) { return quantized(s, v[0], v[1], v[2], Elem::U8); }));
  n.output(scale);
  n.output(zero);
  return llvm::Error::success();
}

/// x - zero as int32; the zero point is a scalar, or a vector along `axis`.
static llvm::Expected<Tensor> centered(Node &n, size_t operand, size_t zeroPoint, int64_t axis) {
  const Tensor &x = n.input(operand);
  if (!isInteger(x.elem) || widthOf(x.elem) > 1)
    return n.invalid("input " + llvm::Twine(operand) + " is " + nameOf(x.elem) + " when it should be int8 or uint8");
  if (!n.hasInput(zeroPoint))
    return n.emit.cast(x, Elem::I32);
  if (n.input(zeroPoint).elem != x.elem)
    return n.invalid("the zero point's type differs from the input's");
  VMPACK_TRY(Tensor zero, alongAxis(n, n.input(zeroPoint), x, axis));
  return n.emit.pointwiseTo(Elem::I32, x.shape, {x, zero}, [](ScalarBuilder &s, Scalars v) {
    return s.cast(v[0], Elem::I32) - s.cast(v[1], Elem::I32);
  });
}

static llvm::Error matMulInteger(Node &n) {
  VMPACK_TRY(Tensor a, centered(n, 0, 2, -2));
  VMPACK_TRY(Tensor b, centered(n, 1, 3, -1));
  VMPACK_TRY(Tensor product, multiplyMatrices(n, a, b));
  n.output(product);
  return llvm::Error::success();
}

/// An int32 accumulator to the output's scale and zero point.
static llvm::Expected<Tensor> requantized(Node &n, const Tensor &sums, Tensor scaleX, Tensor scaleW, Tensor scaleY,
                                          Tensor zeroY, int64_t axis) {
  VMPACK_TRY(scaleX, alongAxis(n, scaleX, sums, axis));
  VMPACK_TRY(scaleW, alongAxis(n, scaleW, sums, axis));
  VMPACK_TRY(scaleY, alongAxis(n, scaleY, sums, axis));
  VMPACK_TRY(zeroY, alongAxis(n, zeroY, sums, axis));
  Elem elem = zeroY.elem;
  if (!isInteger(elem) || widthOf(elem) > 1)
    return n.invalid("the output's zero point is " + nameOf(elem) + " when it should be int8 or uint8");
  return n.emit.pointwiseTo(elem, sums.shape, {sums, scaleX, scaleW, scaleY, zeroY}, [&](ScalarBuilder &s, Scalars v) {
    Scalar value = s.cast(v[0], Elem::F32) * (s.cast(v[1], Elem::F32) * s.cast(v[2], Elem::F32));
    return quantized(s, value, s.cast(v[3], Elem::F32), v[4], elem);
  });
}

static llvm::Error qlinearMatMul(Node &n) {
  VMPACK_TRY(Tensor a, centered(n, 0, 2, -2));
  VMPACK_TRY(Tensor b, centered(n, 3, 5, -1));
  VMPACK_TRY(Tensor sums, multiplyMatrices(n, a, b));
  VMPACK_TRY(Tensor y, requantized(n, sums, n.input(1), n.input(4), n.input(6), n.input(7), -1));
  n.output(y);
  return llvm::Error::success();
}

static llvm::Error convInteger(Node &n) {
  VMPACK_TRY(Tensor x, centered(n, 0, 2, 1));
  VMPACK_TRY(Tensor weights, centered(n, 1, 3, 0));
  VMPACK_TRY(Tensor sums, convolve(n, x, weights, Tensor()));
  n.output(sums);
  return llvm::Error::success();
}

static llvm::Error qlinearConv(Node &n) {
  VMPACK_TRY(Tensor x, centered(n, 0, 2, 1));
  VMPACK_TRY(Tensor weights, centered(n, 3, 5, 0));
  VMPACK_TRY(Tensor sums, convolve(n, x, weights, n.hasInput(8) ? n.input(8) : Tensor()));
  VMPACK_TRY(Tensor y, requantized(n, sums, n.input(1), n.input(4), n.input(6), n.input(7), 1));
  n.output(y);
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::quantizeOps() {
  static const Op ops[] = {
      {"QuantizeLinear", 10, 2, 3, Types::Numeric, quantizeLinear},
      {"DequantizeLinear", 10, 2, 3, Types::Integer, dequantizeLinear, false},
      {"DynamicQuantizeLinear", 11, 1, 1, Types::Float, dynamicQuantizeLinear},
      {"MatMulInteger", 10, 2, 4, Types::Integer, matMulInteger},
      {"QLinearMatMul", 10, 8, 8, Types::Integer, qlinearMatMul},
      {"ConvInteger", 10, 2, 4, Types::Integer, convInteger},
      {"QLinearConv", 10, 8, 9, Types::Integer, qlinearConv},
  };
  return ops;
}
