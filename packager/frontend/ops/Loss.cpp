// Losses of a classification: negative log-likelihood, and cross entropy as a log-softmax before it.
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

static Tensor sumOfAll(Emitter &emit, const Tensor &x) {
  Ints axes;
  for (int64_t axis = 0; axis < x.rank(); ++axis)
    axes.push_back(axis);
  return emit.reduce(x, axes, false, x.elem, Number{}, [](ScalarBuilder &, Scalar sum, Scalar v) { return sum + v; });
}

/// scores: [N, C, d…] log-probabilities, input 1: [N, d…] classes, input 2: [C] weights.
static llvm::Error logLikelihood(Node &n, const Tensor &scores) {
  VMPACK_CHECK(n.checkRank(0, 2));
  Tensor classes = n.input(1), weights = n.hasInput(2) ? n.input(2) : Tensor();
  Dims shape = scores.shape;
  shape.erase(shape.begin() + 1);
  if (!isInteger(classes.elem) || classes.shape != shape)
    return n.invalid("classes of shape " + n.emit.describe(classes) + " do not fit scores of shape " +
                     n.emit.describe(scores));
  if (weights && (weights.rank() != 1 || weights.shape[0] != scores.shape[1] || weights.elem != scores.elem))
    return n.invalid("the weights are not one a class");
  std::string reduction = n.string("reduction", "mean");
  if (reduction != "none" && reduction != "sum" && reduction != "mean")
    return n.invalid("attribute 'reduction' is '" + reduction + "'");
  bool ignores = n.hasAttribute("ignore_index");
  int64_t ignored = n.integer("ignore_index", -1);
  auto weightAt = [&](ScalarBuilder &s, Scalar chosen) {
    Scalar weight = weights ? s.load(weights, s.cast(chosen, Elem::Index)) : s.constant(scores.elem, 1);
    return weight;
  };
  auto classAt = [&](ScalarBuilder &s, Scalars i, Scalar &skipped) { // an ignored class may be no class at all
    Scalar chosen = s.cast(s.load(classes, i), Elem::I64);
    skipped = ignores ? s.compare(Compare::Equal, chosen, s.integer(Elem::I64, ignored)) : s.integer(Elem::Bool, 0);
    return s.select(skipped, s.integer(Elem::I64, 0), chosen);
  };
  Tensor loss = n.emit.generate(scores.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    Scalar skipped, chosen = classAt(s, i, skipped);
    llvm::SmallVector<Scalar> from(i);
    from.insert(from.begin() + 1, s.cast(chosen, Elem::Index));
    Scalar value = s.negate(s.load(scores, from)) * weightAt(s, chosen);
    return s.select(skipped, s.constant(scores.elem, 0), value);
  });
  if (reduction == "none") {
    n.output(loss);
    return llvm::Error::success();
  }
  Tensor total = sumOfAll(n.emit, loss);
  if (reduction == "mean") {
    Tensor shares = n.emit.generate(scores.elem, shape, [&](ScalarBuilder &s, Scalars i) {
      Scalar skipped, chosen = classAt(s, i, skipped);
      return s.select(skipped, s.constant(scores.elem, 0), weightAt(s, chosen));
    });
    total = n.emit.pointwiseTo(scores.elem, {}, {total, sumOfAll(n.emit, shares)},
                               [](ScalarBuilder &, Scalars v) { return v[0] / v[1]; });
  }
  n.output(total);
  return llvm::Error::success();
}

static llvm::Error negativeLogLikelihood(Node &n) { return logLikelihood(n, n.input(0)); }

static llvm::Error crossEntropy(Node &n) {
  VMPACK_CHECK(n.checkRank(0, 2));
  Tensor scores = logSoftmaxOf(n.emit, n.input(0), 1);
  VMPACK_CHECK(logLikelihood(n, scores));
  if (n.outputCount() > 1)
    n.output(scores);
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::lossOps() {
  static const Op ops[] = {
      {"NegativeLogLikelihoodLoss", 12, 2, 3, Types::Float, negativeLogLikelihood},
      {"SoftmaxCrossEntropyLoss", 12, 2, 3, Types::Float, crossEntropy},
  };
  return ops;
}
