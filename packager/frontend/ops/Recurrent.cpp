// RNN, GRU and LSTM. The inputs of all steps go through one matrix product; the loop over the steps holds the rest:
//
//   X [seq, batch, in] ─ W ─► XW [seq, batch, gates*hidden] ─► loop: H, (C) ─► Y [seq, batch, hidden], H, (C)
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;
using Activation = Scalar (*)(ScalarBuilder &, Scalar);

namespace {
enum class Kind { Rnn, Gru, Lstm };

/// What all directions share.
struct Recurrent {
  Kind kind = Kind::Rnn;
  int64_t gates = 1, hidden = 0, directions = 1;
  bool batchFirst = false, linearBeforeReset = false, couples = false;
  double clip = 0;
  std::string direction;
  llvm::SmallVector<Activation> activations; ///< per direction and gate kind
  Tensor x;                                  ///< [seq, batch, in]
  Dim steps, batch;
};

/// One direction's parameters, as the steps want them.
struct Direction {
  Tensor projected;       ///< [seq, batch, gates*hidden], with the input's bias
  Tensor recurrent;       ///< [hidden, gates*hidden]
  Tensor bias, peepholes; ///< [gates*hidden] of the state, [3*hidden]; false when absent
  llvm::ArrayRef<Activation> activations;
};
} // namespace

static Activation activationOf(llvm::StringRef name) {
  if (name == "Tanh")
    return [](ScalarBuilder &s, Scalar x) { return s.function(Function::Tanh, x); };
  if (name == "Sigmoid")
    return [](ScalarBuilder &s, Scalar x) { return s.sigmoid(x); };
  if (name == "Relu")
    return [](ScalarBuilder &s, Scalar x) { return s.maximum(x, s.constant(x.elem, 0)); };
  if (name == "Softsign")
    return [](ScalarBuilder &s, Scalar x) { return x / (s.absolute(x) + 1.0); };
  if (name == "HardSigmoid")
    return [](ScalarBuilder &s, Scalar x) {
      return s.maximum(s.constant(x.elem, 0), s.minimum(s.constant(x.elem, 1), x * 0.2 + 0.5));
    };
  return nullptr;
}

static llvm::Error readActivations(Node &n, Recurrent &r) {
  llvm::SmallVector<std::string> names = n.strings("activations");
  if (names.empty())
    for (int64_t d = 0; d < r.directions; ++d) {
      if (r.kind != Kind::Rnn)
        names.push_back("Sigmoid");
      names.push_back("Tanh");
      if (r.kind == Kind::Lstm)
        names.push_back("Tanh");
    }
  size_t each = r.kind == Kind::Rnn ? 1 : r.kind == Kind::Gru ? 2 : 3;
  if (names.size() != each * r.directions)
    return n.invalid("there are " + llvm::Twine(names.size()) + " activations");
  for (const std::string &name : names) {
    Activation activation = activationOf(name);
    if (!activation)
      return n.unsupported("the activation '" + name + "' is not supported");
    r.activations.push_back(activation);
  }
  if (n.hasAttribute("activation_alpha") || n.hasAttribute("activation_beta"))
    return n.unsupported("parameters of activations are not supported");
  return llvm::Error::success();
}

static llvm::Error checkShapeOf(Node &n, size_t index, llvm::ArrayRef<Dim> shape) {
  if (!n.hasInput(index) || n.input(index).shape == Dims(shape))
    return llvm::Error::success();
  return n.invalid("input " + llvm::Twine(index) + " has shape " + n.emit.describe(n.input(index)) +
                   " when it should be " + n.emit.describe(shape));
}

static llvm::Expected<Recurrent> readRecurrent(Node &n, Kind kind) {
  VMPACK_CHECK(n.checkRank(0, 3, 3));
  VMPACK_CHECK(n.checkRank(1, 3, 3));
  Recurrent r;
  r.kind = kind;
  r.gates = kind == Kind::Rnn ? 1 : kind == Kind::Gru ? 3 : 4;
  r.direction = n.string("direction", "forward");
  if (r.direction != "forward" && r.direction != "reverse" && r.direction != "bidirectional")
    return n.invalid("attribute 'direction' is '" + r.direction + "'");
  r.directions = r.direction == "bidirectional" ? 2 : 1;
  r.batchFirst = n.integer("layout", 0);
  r.linearBeforeReset = n.integer("linear_before_reset", 0);
  r.couples = n.integer("input_forget", 0);
  r.clip = n.real("clip", 0);
  r.x = r.batchFirst ? n.emit.transpose(n.input(0), {1, 0, 2}) : n.input(0);
  r.steps = r.x.shape[0];
  r.batch = r.x.shape[1];
  std::optional<int64_t> rows = constantDim(n.input(1).shape[1]);
  if (!rows || *rows % r.gates)
    return n.invalid("the weights have shape " + n.emit.describe(n.input(1)));
  r.hidden = *rows / r.gates;
  if (n.integer("hidden_size", r.hidden) != r.hidden)
    return n.invalid("attribute 'hidden_size' differs from the weights");
  Emitter &e = n.emit;
  Dim directions = e.dim(r.directions), hidden = e.dim(r.hidden), gates = e.dim(r.gates * r.hidden);
  Dims state = r.batchFirst ? Dims{r.batch, directions, hidden} : Dims{directions, r.batch, hidden};
  VMPACK_CHECK(checkShapeOf(n, 1, {directions, gates, r.x.shape[2]}));
  VMPACK_CHECK(checkShapeOf(n, 2, {directions, gates, hidden}));
  VMPACK_CHECK(checkShapeOf(n, 3, {directions, e.dim(2 * r.gates * r.hidden)}));
  VMPACK_CHECK(checkShapeOf(n, 4, {r.batch}));
  VMPACK_CHECK(checkShapeOf(n, 5, state));
  VMPACK_CHECK(checkShapeOf(n, 6, state));
  VMPACK_CHECK(checkShapeOf(n, 7, {directions, e.dim(3 * r.hidden)}));
  for (size_t i : {0, 1, 2, 3, 5, 6, 7})
    if (n.hasInput(i) && n.input(i).elem != n.input(0).elem)
      return n.invalid("input " + llvm::Twine(i) + " is " + nameOf(n.input(i).elem));
  if (n.hasInput(4) && !isInteger(n.input(4).elem))
    return n.invalid("the sequence lengths are no integers");
  VMPACK_CHECK(readActivations(n, r));
  return r;
}

/// Rows [from, from + size) of direction `d`'s part of a parameter, without the leading dim.
static Tensor part(Emitter &e, const Tensor &x, int64_t d, int64_t from, int64_t size) {
  Dims offsets(x.rank(), e.dim(0)), sizes = x.shape;
  offsets[0] = e.dim(d);
  sizes[0] = e.dim(1);
  offsets[1] = e.dim(from);
  sizes[1] = e.dim(size);
  Dims shape(sizes.begin() + 1, sizes.end());
  return e.reshape(e.slice(x, offsets, sizes, Ints(x.rank(), 1)), shape);
}

static Direction readDirection(Node &n, const Recurrent &r, int64_t d) {
  Emitter &e = n.emit;
  int64_t rows = r.gates * r.hidden;
  Direction direction;
  Tensor weights = e.transpose(part(e, n.input(1), d, 0, rows), {1, 0});
  direction.recurrent = e.transpose(part(e, n.input(2), d, 0, rows), {1, 0});
  Dims shape{r.steps, r.batch, e.dim(rows)};
  direction.projected =
      e.reshape(e.matmul(e.reshape(r.x, {e.productOf({r.steps, r.batch}), r.x.shape[2]}), weights), shape);
  if (n.hasInput(3)) {
    Tensor bias = part(e, n.input(3), d, 0, rows);
    direction.projected = e.pointwiseTo(r.x.elem, shape, {direction.projected, bias},
                                        [](ScalarBuilder &, Scalars v) { return v[0] + v[1]; });
    direction.bias = part(e, n.input(3), d, rows, rows);
  }
  if (n.hasInput(7))
    direction.peepholes = part(e, n.input(7), d, 0, 3 * r.hidden);
  size_t each = r.activations.size() / r.directions;
  direction.activations = llvm::ArrayRef<Activation>(r.activations).slice(each * d, each);
  return direction;
}

/// Columns of gate `gate`.
static Tensor gate(Emitter &e, const Recurrent &r, const Tensor &all, int64_t gate, int64_t count = 1) {
  Dims offsets(all.rank(), e.dim(0)), sizes = all.shape;
  offsets.back() = e.dim(gate * r.hidden);
  sizes.back() = e.dim(count * r.hidden);
  return e.slice(all, offsets, sizes, Ints(all.rank(), 1));
}

static Scalar clipped(ScalarBuilder &s, const Recurrent &r, Scalar x) {
  if (r.clip <= 0)
    return x;
  return s.maximum(s.minimum(x, s.constant(x.elem, r.clip)), s.constant(x.elem, -r.clip));
}

static Tensor addAll(Emitter &e, Tensor a, Tensor b, Tensor bias) {
  llvm::SmallVector<Tensor> operands{a, b};
  if (bias)
    operands.push_back(bias);
  return e.pointwiseTo(a.elem, a.shape, operands,
                       [](ScalarBuilder &, Scalars v) { return v.size() > 2 ? v[0] + (v[1] + v[2]) : v[0] + v[1]; });
}

static Tensor stepRnn(Emitter &e, const Recurrent &r, const Direction &d, const Tensor &x, const Tensor &h) {
  Tensor sum = addAll(e, x, e.matmul(h, d.recurrent), d.bias);
  return e.pointwiseTo(h.elem, h.shape, sum,
                       [&](ScalarBuilder &s, Scalars v) { return d.activations[0](s, clipped(s, r, v[0])); });
}

/// Gates z, r, h.
static Tensor stepGru(Emitter &e, const Recurrent &r, const Direction &d, const Tensor &x, const Tensor &h) {
  auto biasOf = [&](int64_t first, int64_t count) { return d.bias ? gate(e, r, d.bias, first, count) : Tensor(); };
  Tensor both = addAll(e, gate(e, r, x, 0, 2), e.matmul(h, gate(e, r, d.recurrent, 0, 2)), biasOf(0, 2));
  Tensor gates = e.pointwiseTo(h.elem, both.shape, both,
                               [&](ScalarBuilder &s, Scalars v) { return d.activations[0](s, clipped(s, r, v[0])); });
  Tensor update = gate(e, r, gates, 0), reset = gate(e, r, gates, 1), weights = gate(e, r, d.recurrent, 2);
  auto times = [](ScalarBuilder &, Scalars v) { return v[0] * v[1]; };
  Tensor candidate;
  if (r.linearBeforeReset) {
    Tensor state = e.matmul(h, weights);
    if (d.bias)
      state =
          e.pointwiseTo(h.elem, h.shape, {state, biasOf(2, 1)}, [](ScalarBuilder &, Scalars v) { return v[0] + v[1]; });
    candidate = addAll(e, gate(e, r, x, 2), e.pointwiseTo(h.elem, h.shape, {reset, state}, times), Tensor());
  } else {
    candidate =
        addAll(e, gate(e, r, x, 2), e.matmul(e.pointwiseTo(h.elem, h.shape, {reset, h}, times), weights), biasOf(2, 1));
  }
  return e.pointwiseTo(h.elem, h.shape, {update, candidate, h}, [&](ScalarBuilder &s, Scalars v) {
    return (1.0 - v[0]) * d.activations[1](s, clipped(s, r, v[1])) + v[0] * v[2];
  });
}

/// Gates i, o, f, c; answers H and C.
static std::pair<Tensor, Tensor> stepLstm(Emitter &e, const Recurrent &r, const Direction &d, const Tensor &x,
                                          const Tensor &h, const Tensor &c) {
  Tensor gates = addAll(e, x, e.matmul(h, d.recurrent), d.bias);
  llvm::SmallVector<Tensor> operands{gate(e, r, gates, 0), gate(e, r, gates, 2), gate(e, r, gates, 3), c};
  llvm::SmallVector<Tensor> outputs{gate(e, r, gates, 1), Tensor()};
  if (d.peepholes) {
    operands.push_back(gate(e, r, d.peepholes, 0));
    operands.push_back(gate(e, r, d.peepholes, 2));
    outputs.push_back(gate(e, r, d.peepholes, 1));
  }
  Tensor cell = e.pointwiseTo(h.elem, h.shape, operands, [&](ScalarBuilder &s, Scalars v) {
    Scalar in = v[0], forget = v[1];
    if (v.size() > 4)
      in = in + v[4] * v[3], forget = forget + v[5] * v[3];
    in = d.activations[0](s, clipped(s, r, in));
    forget = r.couples ? 1.0 - in : d.activations[0](s, clipped(s, r, forget));
    return forget * v[3] + in * d.activations[1](s, clipped(s, r, v[2]));
  });
  outputs[1] = cell;
  Tensor state = e.pointwiseTo(h.elem, h.shape, outputs, [&](ScalarBuilder &s, Scalars v) {
    Scalar out = v.size() > 2 ? v[0] + v[2] * v[1] : v[0];
    return d.activations[0](s, clipped(s, r, out)) * d.activations[2](s, v[1]);
  });
  return {state, cell};
}

/// [batch, hidden] of direction d, or zeros.
static Tensor initialState(Node &n, const Recurrent &r, size_t index, int64_t d) {
  Emitter &e = n.emit;
  Dims shape{r.batch, e.dim(r.hidden)};
  if (!n.hasInput(index))
    return e.splat(r.x.elem, shape, Number{});
  Tensor all = r.batchFirst ? e.transpose(n.input(index), {1, 0, 2}) : n.input(index);
  Dims offsets{e.dim(d), e.dim(0), e.dim(0)}, sizes{e.dim(1), r.batch, e.dim(r.hidden)};
  return e.reshape(e.slice(all, offsets, sizes, {1, 1, 1}), shape);
}

/// Y, H and C of one direction.
static llvm::SmallVector<Tensor> runDirection(Node &n, const Recurrent &r, int64_t d) {
  Emitter &e = n.emit;
  Direction direction = readDirection(n, r, d);
  bool reverse = r.direction == "reverse" || d == 1;
  Dim hidden = e.dim(r.hidden);
  Tensor all = e.splat(r.x.elem, {r.steps, r.batch, hidden}, Number{});
  Tensor lengths = n.hasInput(4) ? n.input(4) : Tensor();
  return e.loop(
      r.steps, {all, initialState(n, r, 5, d), initialState(n, r, 6, d)}, [&](Dim step, llvm::ArrayRef<Tensor> states) {
        Dim time = reverse ? e.simplify(r.steps - 1 - step) : step;
        Dims offsets{time, e.dim(0), e.dim(0)}, sizes{e.dim(1), r.batch, e.dim(r.gates * r.hidden)};
        Tensor x = e.reshape(e.slice(direction.projected, offsets, sizes, {1, 1, 1}), {sizes[1], sizes[2]});
        Tensor h, c = states[2];
        if (r.kind == Kind::Lstm)
          std::tie(h, c) = stepLstm(e, r, direction, x, states[1], states[2]);
        else
          h = r.kind == Kind::Gru ? stepGru(e, r, direction, x, states[1]) : stepRnn(e, r, direction, x, states[1]);
        Tensor shown = h;
        if (lengths) { // beyond its length a sequence keeps its state and shows zeros
          Tensor column = e.reshape(lengths, {r.batch, e.dim(1)});
          auto keep = [&](const Tensor &next, const Tensor &old) {
            return e.pointwiseTo(h.elem, h.shape, {column, next, old}, [&](ScalarBuilder &s, Scalars v) {
              return s.select(s.cast(s.position(time), v[0].elem) < v[0], v[1], v[2]);
            });
          };
          shown = keep(h, e.splat(h.elem, h.shape, Number{}));
          h = keep(h, states[1]);
          c = r.kind == Kind::Lstm ? keep(c, states[2]) : c;
        }
        Tensor slab = e.reshape(shown, {e.dim(1), r.batch, hidden});
        return llvm::SmallVector<Tensor>{e.insert(slab, states[0], offsets), h, c};
      });
}

static llvm::Error recurrent(Node &n, Kind kind) {
  VMPACK_TRY(Recurrent r, readRecurrent(n, kind));
  Emitter &e = n.emit;
  Dim one = e.dim(1), hidden = e.dim(r.hidden);
  VMPACK_CHECK(n.checkShape({r.steps, e.dim(r.directions), r.batch, hidden}));
  llvm::SmallVector<Tensor> all, h, c;
  for (int64_t d = 0; d < r.directions; ++d) {
    llvm::SmallVector<Tensor> results = runDirection(n, r, d);
    all.push_back(e.reshape(results[0], {r.steps, one, r.batch, hidden}));
    h.push_back(e.reshape(results[1], {one, r.batch, hidden}));
    c.push_back(e.reshape(results[2], {one, r.batch, hidden}));
  }
  Tensor y = e.concat(all, 1), last = e.concat(h, 0), cell = e.concat(c, 0);
  n.output(r.batchFirst ? e.transpose(y, {2, 0, 1, 3}) : y);
  n.output(r.batchFirst ? e.transpose(last, {1, 0, 2}) : last);
  if (kind == Kind::Lstm)
    n.output(r.batchFirst ? e.transpose(cell, {1, 0, 2}) : cell);
  return llvm::Error::success();
}

static llvm::Error rnn(Node &n) { return recurrent(n, Kind::Rnn); }
static llvm::Error gru(Node &n) { return recurrent(n, Kind::Gru); }
static llvm::Error lstm(Node &n) { return recurrent(n, Kind::Lstm); }

llvm::ArrayRef<Op> vmpack::frontend::recurrentOps() {
  static const Op ops[] = {
      {"RNN", 7, 3, 6, Types::Float, rnn},
      {"GRU", 7, 3, 6, Types::Float, gru},
      {"LSTM", 7, 3, 8, Types::Float, lstm},
  };
  return ops;
}
