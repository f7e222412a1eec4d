// Activation functions and softmaxes.
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;
using Curve = Scalar (*)(ScalarBuilder &, Scalar x, double alpha, double beta);

/// A function of one element with up to two attributes: `alpha` and a second one.
static llvm::Error curve(Node &n, Curve f, double alpha = 0, llvm::StringRef second = "beta", double beta = 0) {
  double a = n.real("alpha", alpha), b = n.real(second, beta);
  n.output(n.emit.pointwiseTo(n.input(0).elem, n.input(0).shape, n.input(0),
                              [&](ScalarBuilder &s, Scalars x) { return f(s, x[0], a, b); }));
  return llvm::Error::success();
}

static Scalar exponential(ScalarBuilder &s, Scalar x) { return s.function(Function::Exp, x); }

static Scalar softplusOf(ScalarBuilder &s, Scalar x) {
  // max(x, 0) + log1p(exp(-|x|)) does not overflow.
  return s.maximum(x, s.constant(x.elem, 0)) + s.function(Function::Log1p, exponential(s, s.negate(s.absolute(x))));
}

static llvm::Error relu(Node &n) {
  return curve(n, [](ScalarBuilder &s, Scalar x, double, double) { return s.maximum(x, s.constant(x.elem, 0)); });
}
static llvm::Error sigmoid(Node &n) {
  return curve(n, [](ScalarBuilder &s, Scalar x, double, double) { return s.sigmoid(x); });
}
static llvm::Error leakyRelu(Node &n) {
  return curve(n, [](ScalarBuilder &s, Scalar x, double a, double) { return s.select(x < 0.0, x * a, x); }, 0.01);
}
static llvm::Error thresholdedRelu(Node &n) {
  return curve(
      n, [](ScalarBuilder &s, Scalar x, double a, double) { return s.select(x > a, x, s.constant(x.elem, 0)); }, 1);
}
static llvm::Error elu(Node &n) {
  return curve(
      n,
      [](ScalarBuilder &s, Scalar x, double a, double) { return s.select(x < 0.0, a * (exponential(s, x) - 1.0), x); },
      1);
}
static llvm::Error selu(Node &n) {
  return curve(
      n,
      [](ScalarBuilder &s, Scalar x, double a, double gamma) {
        return s.select(x > 0.0, gamma * x, gamma * (a * exponential(s, x) - a));
      },
      1.67326319217681884765625, "gamma", 1.05070102214813232421875);
}
static llvm::Error celu(Node &n) {
  return curve(
      n,
      [](ScalarBuilder &s, Scalar x, double a, double) {
        Scalar zero = s.constant(x.elem, 0);
        return s.maximum(zero, x) + s.minimum(zero, a * (exponential(s, x / a) - 1.0));
      },
      1);
}
static llvm::Error hardSigmoid(Node &n) {
  return curve(
      n,
      [](ScalarBuilder &s, Scalar x, double a, double b) {
        return s.maximum(s.constant(x.elem, 0), s.minimum(s.constant(x.elem, 1), x * a + b));
      },
      0.2, "beta", 0.5);
}
static llvm::Error hardSwish(Node &n) {
  return curve(n, [](ScalarBuilder &s, Scalar x, double, double) {
    return x * s.maximum(s.constant(x.elem, 0), s.minimum(s.constant(x.elem, 1), x * (1.0 / 6) + 0.5));
  });
}
static llvm::Error softplus(Node &n) {
  return curve(n, [](ScalarBuilder &s, Scalar x, double, double) { return softplusOf(s, x); });
}
static llvm::Error softsign(Node &n) {
  return curve(n, [](ScalarBuilder &s, Scalar x, double, double) { return x / (s.absolute(x) + 1.0); });
}
static llvm::Error mish(Node &n) {
  return curve(
      n, [](ScalarBuilder &s, Scalar x, double, double) { return x * s.function(Function::Tanh, softplusOf(s, x)); });
}
static llvm::Error swish(Node &n) {
  return curve(n, [](ScalarBuilder &s, Scalar x, double a, double) { return x * s.sigmoid(x * a); }, 1);
}
static llvm::Error shrink(Node &n) {
  double lambda = n.real("lambd", 0.5), bias = n.real("bias", 0);
  n.output(n.emit.pointwiseTo(n.input(0).elem, n.input(0).shape, n.input(0), [&](ScalarBuilder &s, Scalars x) {
    Elem elem = x[0].elem;
    Scalar low = s.compare(Compare::Less, s.cast(x[0], Elem::F64), s.real(Elem::F64, -lambda));
    Scalar high = s.compare(Compare::Greater, s.cast(x[0], Elem::F64), s.real(Elem::F64, lambda));
    return s.select(low, x[0] + bias, s.select(high, x[0] - bias, s.constant(elem, 0)));
  }));
  return llvm::Error::success();
}

static llvm::Error gelu(Node &n) {
  bool approximate = n.string("approximate", "none") == "tanh";
  n.output(n.emit.pointwiseTo(n.input(0).elem, n.input(0).shape, n.input(0), [&](ScalarBuilder &s, Scalars v) {
    Scalar x = v[0];
    if (!approximate)
      return 0.5 * x * (s.function(Function::Erf, x * 0.70710678118654752440) + 1.0);
    Scalar inner = 0.79788456080286535588 * (x + 0.044715 * (x * x * x));
    return 0.5 * x * (s.function(Function::Tanh, inner) + 1.0);
  }));
  return llvm::Error::success();
}

static llvm::Error prelu(Node &n) {
  VMPACK_CHECK(n.checkSameElem());
  Tensor slope = n.input(1);
  const Tensor &x = n.input(0);
  if (n.opset < 7 && slope.rank() == 1 && x.rank() > 1 && slope.shape[0] == x.shape[1]) { // per channel
    Dims shape(x.rank() - 1, n.emit.dim(1));
    shape[0] = slope.shape[0];
    slope = n.emit.reshape(slope, shape);
  }
  auto shape = n.emit.broadcast({x.shape, slope.shape});
  if (!shape || *shape != x.shape) {
    std::string reason =
        shape ? "the slope's shape " + n.emit.describe(slope) + " does not fit the input's " + n.emit.describe(x)
              : llvm::toString(shape.takeError());
    return n.invalid(reason);
  }
  n.output(n.emit.pointwiseTo(x.elem, x.shape, {x, slope},
                              [](ScalarBuilder &s, Scalars v) { return s.select(v[0] < 0.0, v[0] * v[1], v[0]); }));
  return llvm::Error::success();
}

/// Softmax or its logarithm along an axis, shifted by the maximum so that nothing overflows.
static Tensor softmaxOf(Emitter &emit, const Tensor &x, int64_t axis, bool logarithm) {
  ScalarBuilder limits(emit.context, 0);
  Tensor most = emit.reduce(x, axis, true, x.elem, limits.extreme(x.elem, true).number,
                            [](ScalarBuilder &s, Scalar m, Scalar v) { return s.maximum(m, v); });
  auto exponent = [&](ScalarBuilder &s, Scalars v) { return s.function(Function::Exp, v[0] - v[1]); };
  auto add = [](ScalarBuilder &, Scalar sum, Scalar v) { return sum + v; };
  if (logarithm) {
    Tensor shifted =
        emit.pointwiseTo(x.elem, x.shape, {x, most}, [](ScalarBuilder &, Scalars v) { return v[0] - v[1]; });
    Tensor sums = emit.reduce(shifted, axis, true, x.elem, Number{}, [](ScalarBuilder &s, Scalar sum, Scalar v) {
      return sum + s.function(Function::Exp, v);
    });
    return emit.pointwiseTo(x.elem, x.shape, {shifted, sums},
                            [](ScalarBuilder &s, Scalars v) { return v[0] - s.function(Function::Log, v[1]); });
  }
  Tensor exponentials = emit.pointwiseTo(x.elem, x.shape, {x, most}, exponent);
  Tensor sums = emit.reduce(exponentials, axis, true, x.elem, Number{}, add);
  return emit.pointwiseTo(x.elem, x.shape, {exponentials, sums},
                          [](ScalarBuilder &, Scalars v) { return v[0] / v[1]; });
}

Tensor vmpack::frontend::logSoftmaxOf(Emitter &emit, const Tensor &x, int64_t axis) {
  return softmaxOf(emit, x, axis, /*logarithm=*/true);
}

/// From opset 13 along one axis; before, over all axes from it on, as a matrix.
template <typename Function> static llvm::Error alongAxis(Node &n, Function f) {
  Tensor x = n.input(0);
  if (x.rank() == 0)
    return n.invalid("input 0 has rank 0");
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", n.opset >= 13 ? -1 : 1), x.rank()));
  if (n.opset >= 13 || axis == x.rank() - 1) {
    n.output(f(x, axis));
    return llvm::Error::success();
  }
  llvm::ArrayRef<Dim> shape = x.shape;
  Dims flat{n.emit.productOf(shape.take_front(axis)), n.emit.productOf(shape.drop_front(axis))};
  n.output(n.emit.reshape(f(n.emit.reshape(x, flat), 1), x.shape));
  return llvm::Error::success();
}

static llvm::Error softmax(Node &n) {
  return alongAxis(n, [&](const Tensor &x, int64_t axis) { return softmaxOf(n.emit, x, axis, false); });
}
static llvm::Error logSoftmax(Node &n) {
  return alongAxis(n, [&](const Tensor &x, int64_t axis) { return softmaxOf(n.emit, x, axis, true); });
}
static llvm::Error hardmax(Node &n) {
  return alongAxis(n, [&](const Tensor &x, int64_t axis) {
    Tensor first = n.emit.argReduce(x, axis, true, true, false);
    return n.emit.generate(x.elem, x.shape, [&](ScalarBuilder &s, Scalars i) {
      llvm::SmallVector<Scalar> at(i);
      at[axis] = s.position(n.emit.dim(0));
      Scalar wins = s.compare(Compare::Equal, s.load(first, at), s.cast(i[axis], Elem::I64));
      return s.select(wins, s.constant(x.elem, 1), s.constant(x.elem, 0));
    });
  });
}

llvm::ArrayRef<Op> vmpack::frontend::activationOps() {
  static const Op ops[] = {
      {"Relu", 1, 1, 1, Types::Numeric, relu},
      {"Sigmoid", 1, 1, 1, Types::Float, sigmoid},
      {"LeakyRelu", 1, 1, 1, Types::Float, leakyRelu},
      {"ThresholdedRelu", 1, 1, 1, Types::Float, thresholdedRelu},
      {"PRelu", 1, 2, 2, Types::Numeric, prelu},
      {"Elu", 1, 1, 1, Types::Float, elu},
      {"Selu", 1, 1, 1, Types::Float, selu},
      {"Celu", 12, 1, 1, Types::Float, celu},
      {"HardSigmoid", 1, 1, 1, Types::Float, hardSigmoid},
      {"HardSwish", 14, 1, 1, Types::Float, hardSwish},
      {"Softplus", 1, 1, 1, Types::Float, softplus},
      {"Softsign", 1, 1, 1, Types::Float, softsign},
      {"Mish", 18, 1, 1, Types::Float, mish},
      {"Swish", 24, 1, 1, Types::Float, swish},
      {"Shrink", 9, 1, 1, Types::Numeric, shrink},
      {"Gelu", 20, 1, 1, Types::Float, gelu},
      {"Gelu", 1, 1, 1, Types::Float, gelu, true, "com.microsoft"},
      {"Softmax", 1, 1, 1, Types::Float, softmax},
      {"LogSoftmax", 1, 1, 1, Types::Float, logSoftmax},
      {"Hardmax", 1, 1, 1, Types::Float, hardmax},
  };
  return ops;
}
