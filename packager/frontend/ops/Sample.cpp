// Sums over products by subscripts (Einsum), samples at computed places (GridSample), largest elements (TopK), and the
// windows of signal processing.
#include "packager/frontend/Node.h"

#include <map>
#include <numbers>

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

namespace {
/// "ij,jk->ik" as one letter an axis; an ellipsis becomes capital-like letters from 128 on.
struct Subscripts {
  llvm::SmallVector<std::string> operands;
  std::string result;
};
} // namespace

static llvm::Expected<Subscripts> readSubscripts(Node &n) {
  std::string equation = n.string("equation", "");
  llvm::erase(equation, ' ');
  auto [left, right] = llvm::StringRef(equation).split("->");
  bool hasResult = llvm::StringRef(equation).contains("->");
  llvm::SmallVector<llvm::StringRef> terms;
  left.split(terms, ',');
  if (terms.size() != n.inputs.size())
    return n.invalid("the equation has " + llvm::Twine(terms.size()) + " terms for " + llvm::Twine(n.inputs.size()) +
                     " inputs");
  Subscripts result;
  size_t widest = 0;
  auto spread = [](llvm::StringRef term, size_t dims, size_t all) { // the last `dims` of `all` letters
    std::string letters;
    auto [before, after] = term.split("...");
    letters = before.str();
    for (size_t i = all - dims; i < all; ++i)
      letters += static_cast<char>(128 + i);
    return letters + after.str();
  };
  for (auto [term, input] : llvm::zip_equal(terms, n.inputs))
    if (size_t given = term.contains("...") ? term.size() - 3 : term.size(); term.contains("..."))
      widest = std::max<size_t>(widest, input.shape.size() > given ? input.shape.size() - given : 0);
  if (widest > 16)
    return n.invalid("the ellipsis stands for too many dims");
  std::map<char, int> seen;
  for (auto [term, input] : llvm::zip_equal(terms, n.inputs)) {
    size_t given = term.contains("...") ? term.size() - 3 : term.size();
    if (given > input.shape.size() || (!term.contains("...") && given != input.shape.size()))
      return n.invalid("the term '" + term + "' does not fit shape " + n.emit.describe(input));
    result.operands.push_back(term.contains("...") ? spread(term, input.shape.size() - given, widest) : term.str());
    for (char letter : result.operands.back())
      ++seen[letter];
  }
  if (hasResult) {
    result.result = right.contains("...") ? spread(right, widest, widest) : right.str();
  } else { // the ellipsis, then the letters that occur once, in alphabetical order
    for (size_t i = 0; i < widest; ++i)
      result.result += static_cast<char>(128 + i);
    for (auto [letter, times] : seen)
      if (times == 1 && static_cast<unsigned char>(letter) < 128)
        result.result += letter;
  }
  for (char letter : result.result)
    if (!seen.count(letter) || llvm::count(result.result, letter) > 1)
      return n.invalid("the equation's result '" + right + "' is not made of its operands");
  return result;
}

/// Two operands that are matrices but for batches are a matmul; all else multiplies in one broadcast and adds up.
static llvm::Error einsum(Node &n) {
  VMPACK_CHECK(n.checkSameElem());
  VMPACK_TRY(Subscripts subscripts, readSubscripts(n));
  Emitter &e = n.emit;
  std::map<char, Dim> sizes;
  std::string letters = subscripts.result; // the loops: result, then what is summed
  for (auto [term, input] : llvm::zip_equal(subscripts.operands, n.inputs))
    for (auto [letter, size] : llvm::zip_equal(term, input.shape)) {
      auto [known, added] = sizes.try_emplace(letter, size);
      if (!added && isDim(known->second, 1))
        known->second = size;
      else if (!added && known->second != size && !isDim(size, 1))
        return n.invalid("the equation gives one letter two sizes");
      if (letters.find(letter) == std::string::npos)
        letters += letter;
    }
  Dims whole, shape;
  for (char letter : letters)
    whole.push_back(sizes[letter]);
  if (whole.size() > 16)
    return n.unsupported("more than 16 letters are not supported");
  VMPACK_CHECK(n.checkShape(whole));
  llvm::SmallVector<Tensor> operands;
  for (auto [term, input] : llvm::zip_equal(subscripts.operands, n.inputs)) {
    std::string own; // a repeated letter is a diagonal
    for (char letter : letters)
      if (term.find(letter) != std::string::npos)
        own += letter;
    Dims aligned, diagonal;
    for (char letter : letters)
      aligned.push_back(own.find(letter) != std::string::npos ? input.shape[term.find(letter)] : e.dim(1));
    for (char letter : own)
      diagonal.push_back(input.shape[term.find(letter)]);
    Tensor ready = input;
    if (own.size() == term.size()) {
      Ints order;
      for (char letter : own)
        order.push_back(static_cast<int64_t>(term.find(letter)));
      ready = e.transpose(input, order);
    } else {
      ready = e.generate(input.elem, diagonal, [&, term = term, input = input](ScalarBuilder &s, Scalars i) {
        llvm::SmallVector<Scalar> from;
        for (char letter : term)
          from.push_back(i[own.find(letter)]);
        return s.load(input, from);
      });
    }
    operands.push_back(e.reshape(ready, aligned));
  }
  auto product = [](ScalarBuilder &, Scalars v) {
    Scalar result = v[0];
    for (Scalar factor : v.drop_front())
      result = result * factor;
    return result;
  };
  Ints summed;
  for (size_t i = subscripts.result.size(); i < letters.size(); ++i)
    summed.push_back(static_cast<int64_t>(i));
  // (batch, row) x (batch, column) with one summed letter: a matmul.
  const std::string &out = subscripts.result;
  if (operands.size() == 2 && summed.size() == 1 && out.size() >= 2) {
    size_t rank = out.size(), k = summed[0];
    bool fits = operands[0].shape[k] == whole[k] && operands[1].shape[k] == whole[k];
    for (size_t i = 0; i < rank; ++i)
      fits &=
          (i + 1 == rank || operands[0].shape[i] == whole[i]) && (i + 2 == rank || operands[1].shape[i] == whole[i]);
    fits &= isDim(operands[0].shape[rank - 1], 1) && isDim(operands[1].shape[rank - 2], 1);
    if (fits) {
      Dims left(operands[0].shape), right(operands[1].shape);
      left.erase(left.begin() + rank - 1);   // batch…, row, k
      right.erase(right.begin() + rank - 2); // batch…, column, k
      Ints order;
      for (size_t i = 0; i < rank; ++i)
        order.push_back(static_cast<int64_t>(i));
      std::swap(order[rank - 2], order[rank - 1]);
      Tensor b = e.transpose(e.reshape(operands[1], right), order);
      VMPACK_TRY(Tensor result, multiplyMatrices(n, e.reshape(operands[0], left), b));
      n.output(result);
      return llvm::Error::success();
    }
  }
  Tensor products = e.pointwiseTo(n.input(0).elem, whole, operands, product);
  n.output(summed.empty() ? products
                          : e.reduce(products, summed, false, products.elem, Number{},
                                     [](ScalarBuilder &, Scalar sum, Scalar v) { return sum + v; }));
  return llvm::Error::success();
}

/// A coordinate reflected into [low, high].
static Scalar reflected(ScalarBuilder &s, Scalar x, Scalar low, Scalar high) {
  Scalar span = s.maximum(high - low, s.real(x.elem, 1e-6)), distance = s.absolute(x - low);
  Scalar phase = s.remainder(distance, span * 2.0);
  return low + s.select(phase > span, span * 2.0 - phase, phase);
}

static llvm::Error gridSample(Node &n) {
  VMPACK_CHECK(n.checkRank(0, 4, 4));
  VMPACK_CHECK(n.checkRank(1, 4, 4));
  const Tensor x = n.input(0);
  Emitter &e = n.emit;
  Tensor grid = e.cast(n.input(1), x.elem);
  std::string mode = n.string("mode", "bilinear"), padding = n.string("padding_mode", "zeros");
  bool corners = n.integer("align_corners", 0);
  bool nearest = mode == "nearest", cubic = mode == "bicubic" || mode == "cubic";
  if (grid.shape[0] != x.shape[0] || !isDim(grid.shape[3], 2))
    return n.invalid("the grid " + e.describe(grid) + " does not fit " + e.describe(x));
  if ((!nearest && !cubic && mode != "bilinear" && mode != "linear") ||
      (padding != "zeros" && padding != "border" && padding != "reflection"))
    return n.invalid("attribute 'mode' is '" + mode + "', 'padding_mode' is '" + padding + "'");
  Dims shape{x.shape[0], x.shape[1], grid.shape[1], grid.shape[2]};
  VMPACK_CHECK(n.checkShape(shape));
  n.output(e.generate(x.elem, shape, [&](ScalarBuilder &s, Scalars i) {
    Scalar zero = s.constant(x.elem, 0);
    auto size = [&](int axis) { return s.cast(s.position(x.shape[2 + axis]), x.elem); };
    auto place = [&](int axis) { // 0: y, 1: x; the grid holds x first
      Scalar g = s.load(grid, {i[0], i[2], i[3], s.integer(Elem::Index, 1 - axis)});
      Scalar at = corners ? (g + 1.0) / 2.0 * (size(axis) - 1.0) : ((g + 1.0) * size(axis) - 1.0) / 2.0;
      return nearest ? s.function(Function::RoundEven, at) : at;
    };
    auto pixel = [&](Scalar row, Scalar column) {
      Scalar inside = s.integer(Elem::Bool, 1);
      llvm::SmallVector<Scalar> from{i[0], i[1]};
      for (auto [axis, at] : {std::pair(0, row), std::pair(1, column)}) {
        Scalar high = size(axis) - 1.0, where = at;
        if (padding == "zeros")
          inside = s.bitAnd(inside, s.bitAnd(at >= 0.0, at <= high));
        if (padding == "reflection")
          where = corners ? reflected(s, at, zero, high) : reflected(s, at, zero - 0.5, high + 0.5);
        from.push_back(s.cast(s.maximum(s.minimum(where, high), zero), Elem::Index));
      }
      return s.select(inside, s.load(x, from), zero);
    };
    Scalar y = place(0), at = place(1);
    if (nearest)
      return pixel(y, at);
    Scalar top = s.function(Function::Floor, y), left = s.function(Function::Floor, at);
    auto weights = [&](Scalar t) {
      llvm::SmallVector<Scalar> w;
      if (!cubic)
        return llvm::SmallVector<Scalar>{1.0 - t, t};
      constexpr double a = -0.75;
      auto far = [&](Scalar d) { return ((a * d - 5 * a) * d + 8 * a) * d - 4 * a; };
      auto near = [&](Scalar d) { return ((a + 2) * d - (a + 3)) * d * d + 1.0; };
      return llvm::SmallVector<Scalar>{far(t + 1.0), near(t), near(1.0 - t), far(2.0 - t)};
    };
    auto rows = weights(y - top), columns = weights(at - left);
    int first = cubic ? -1 : 0;
    Scalar sum = zero;
    for (size_t r = 0; r < rows.size(); ++r) {
      Scalar line = zero;
      for (size_t c = 0; c < columns.size(); ++c)
        line = line + columns[c] * pixel(top + static_cast<double>(first + static_cast<int>(r)),
                                         left + static_cast<double>(first + static_cast<int>(c)));
      sum = sum + rows[r] * line;
    }
    return sum;
  }));
  return llvm::Error::success();
}

/// An element's rank is how many beat it, or equal it and come before: no sort, and ties keep their order.
static llvm::Error topK(Node &n) {
  const Tensor x = n.input(0);
  Emitter &e = n.emit;
  VMPACK_CHECK(n.checkRank(0, 1));
  VMPACK_TRY(int64_t axis, n.axis(n.integer("axis", -1), x.rank()));
  Ints count{n.integer("k", 1)};
  if (n.opset >= 10) {
    if (!n.hasInput(1))
      return n.invalid("input 1 is missing");
    VMPACK_TRY(count, n.knownIntegers(1));
  }
  std::optional<int64_t> size = constantDim(x.shape[axis]);
  if (!size)
    return n.unsupported("TopK along a symbolic dim is not supported; fix it with --dim");
  if (count.size() != 1 || count[0] < 0 || count[0] > *size)
    return n.invalid("k does not fit " + llvm::Twine(*size) + " elements");
  bool largest = n.integer("largest", 1);
  // ranks[…, i, …] = sum over j of (x[j] before x[i])
  Dims wide = x.shape, rows = x.shape, columns = x.shape;
  wide.insert(wide.begin() + axis + 1, x.shape[axis]);
  rows.insert(rows.begin() + axis + 1, e.dim(1));
  columns.insert(columns.begin() + axis, e.dim(1));
  Dims square{x.shape[axis], x.shape[axis]};
  square.append(x.rank() - axis - 1, e.dim(1));
  Tensor earlier = e.reshape(
      e.generate(Elem::Bool, {x.shape[axis], x.shape[axis]}, [](ScalarBuilder &, Scalars i) { return i[1] < i[0]; }),
      square);
  Tensor beats = e.pointwiseTo(Elem::I64, wide, {e.reshape(x, rows), e.reshape(x, columns), earlier},
                               [&](ScalarBuilder &s, Scalars v) {
                                 Scalar better = largest ? v[1] > v[0] : v[1] < v[0];
                                 return s.cast(s.bitOr(better, s.bitAnd(v[1] == v[0], v[2])), Elem::I64);
                               });
  Tensor ranks =
      e.reduce(beats, axis + 1, false, Elem::I64, Number{}, [](ScalarBuilder &, Scalar m, Scalar v) { return m + v; });
  // positions[…, r, …] = sum over i of (ranks[i] == r) * i
  Dims chosen = x.shape, all = wide, tall(x.rank() - axis, e.dim(1)), line(x.rank() - axis, e.dim(1));
  chosen[axis] = e.dim(count[0]);
  all[axis] = e.dim(count[0]);
  tall.push_back(e.dim(1));
  tall[0] = e.dim(count[0]);
  line[0] = x.shape[axis];
  Tensor wanted = e.reshape(
      e.generate(Elem::I64, Dims{e.dim(count[0])}, [](ScalarBuilder &s, Scalars i) { return s.cast(i[0], Elem::I64); }),
      tall);
  Tensor numbers = e.reshape(
      e.generate(Elem::I64, Dims{x.shape[axis]}, [](ScalarBuilder &s, Scalars i) { return s.cast(i[0], Elem::I64); }),
      line);
  Tensor hits =
      e.pointwiseTo(Elem::I64, all, {e.reshape(ranks, columns), wanted, numbers}, [](ScalarBuilder &s, Scalars v) {
        return s.select(s.compare(Compare::Equal, v[0], v[1]), v[2], s.constant(Elem::I64, 0));
      });
  Tensor indices =
      e.reduce(hits, axis + 1, false, Elem::I64, Number{}, [](ScalarBuilder &, Scalar m, Scalar v) { return m + v; });
  n.output(e.generate(x.elem, chosen, [&](ScalarBuilder &s, Scalars i) {
    llvm::SmallVector<Scalar> from(i);
    from[axis] = s.cast(s.load(indices, i), Elem::Index);
    return s.load(x, from);
  }));
  n.output(indices);
  return llvm::Error::success();
}

/// a0 - a1 cos(2πi/m) + a2 cos(4πi/m), with m the size, or one less when the window is not periodic.
static llvm::Error cosineWindow(Node &n, double a0, double a1, double a2) {
  if (!n.input(0).isKnown())
    return n.unsupported("the size must be known when the model is compiled");
  Tensor known = n.input(0);
  if (!isDim(n.emit.productOf(known.shape), 1))
    return n.invalid("the size is no scalar");
  Tensor wide = n.emit.cast(n.emit.reshape(known, {}), Elem::I64);
  Dim size = wide.constant ? n.emit.dim(readElement(wide, 0).integer) : wide.elements->front();
  VMPACK_CHECK(n.checkShape(size));
  Elem elem = elemOf(static_cast<int>(n.integer("output_datatype", 1)));
  if (!isFloat(elem))
    return n.unsupported("windows of " + nameOf(elem) + " are not supported");
  bool periodic = n.integer("periodic", 1);
  n.output(n.emit.generate(elem, size, [&](ScalarBuilder &s, Scalars i) {
    Scalar period = s.cast(s.position(size), Elem::F64) - (periodic ? 0.0 : 1.0);
    Scalar phase = s.cast(i[0], Elem::F64) * (2 * std::numbers::pi) / period;
    Scalar value = a0 - a1 * s.function(Function::Cos, phase) + a2 * s.function(Function::Cos, phase * 2.0);
    return s.cast(value, elem);
  }));
  return llvm::Error::success();
}
static llvm::Error hannWindow(Node &n) { return cosineWindow(n, 0.5, 0.5, 0); }
static llvm::Error hammingWindow(Node &n) { return cosineWindow(n, 25.0 / 46, 1 - 25.0 / 46, 0); }
static llvm::Error blackmanWindow(Node &n) { return cosineWindow(n, 0.42, 0.5, 0.08); }

llvm::ArrayRef<Op> vmpack::frontend::sampleOps() {
  static const Op ops[] = {
      {"Einsum", 12, 1, -1, Types::Numeric, einsum},
      {"GridSample", 16, 2, 2, Types::Float, gridSample},
      {"TopK", 1, 1, 2, Types::Numeric, topK},
      {"HannWindow", 17, 1, 1, Types::Integer, hannWindow},
      {"HammingWindow", 17, 1, 1, Types::Integer, hammingWindow},
      {"BlackmanWindow", 17, 1, 1, Types::Integer, blackmanWindow},
  };
  return ops;
}
