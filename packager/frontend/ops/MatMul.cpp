// Contractions of matrices: everything becomes linalg.matmul or linalg.batch_matmul.
#include "packager/frontend/Node.h"

using namespace vmpack::frontend;
using Scalars = llvm::ArrayRef<Scalar>;

/// C as it enters Gemm: scaled, and broadcastable to the product.
static llvm::Error addScaled(Node &n, Tensor product, double alpha, double beta) {
  bool hasC = n.hasInput(2) && beta != 0;
  if (!hasC && alpha == 1) {
    n.output(product);
    return llvm::Error::success();
  }
  llvm::SmallVector<Tensor> operands{product};
  if (hasC)
    operands.push_back(n.input(2));
  if (hasC) {
    auto shape = n.emit.broadcast({product.shape, n.input(2).shape});
    if (!shape)
      return n.invalid(llvm::toString(shape.takeError()));
    if (*shape != product.shape)
      return n.invalid("input 2 of shape " + n.emit.describe(n.input(2)) + " does not broadcast to " +
                       n.emit.describe(product));
  }
  n.output(n.emit.pointwiseTo(product.elem, product.shape, operands, [&](ScalarBuilder &, Scalars x) {
    Scalar y = alpha == 1 ? x[0] : x[0] * alpha;
    return hasC ? y + (beta == 1 ? x[1] : x[1] * beta) : y;
  }));
  return llvm::Error::success();
}

static llvm::Error gemm(Node &n) {
  VMPACK_CHECK(n.checkSameElem());
  VMPACK_CHECK(n.checkRank(0, 2, 2));
  VMPACK_CHECK(n.checkRank(1, 2, 2));
  Tensor a = n.input(0), b = n.input(1);
  if (n.integer("transA", 0))
    a = n.emit.transpose(a, {1, 0});
  if (n.integer("transB", 0))
    b = n.emit.transpose(b, {1, 0});
  if (a.shape[1] != b.shape[0])
    return n.invalid("the inner dims of " + n.emit.describe(a) + " and " + n.emit.describe(b) + " differ");
  return addScaled(n, n.emit.matmul(a, b), n.real("alpha", 1), n.real("beta", 1));
}

/// numpy's matmul: leading dims are batches that broadcast.
llvm::Expected<Tensor> vmpack::frontend::multiplyMatrices(Node &n, Tensor a, Tensor b) {
  Emitter &emit = n.emit;
  if (a.rank() == 0 || b.rank() == 0)
    return n.invalid("an operand has rank 0");
  bool dropRow = a.rank() == 1, dropColumn = b.rank() == 1;
  if (dropRow)
    a = emit.reshape(a, {emit.dim(1), a.shape[0]});
  if (dropColumn)
    b = emit.reshape(b, {b.shape[0], emit.dim(1)});
  Dim rows = a.shape[a.rank() - 2], inner = a.shape.back(), columns = b.shape.back();
  if (inner != b.shape[b.rank() - 2])
    return n.invalid("the inner dims of " + emit.describe(a) + " and " + emit.describe(b) + " differ");
  Dims batchA(llvm::ArrayRef<Dim>(a.shape).drop_back(2)), batchB(llvm::ArrayRef<Dim>(b.shape).drop_back(2));
  auto batch = emit.broadcast({batchA, batchB});
  if (!batch)
    return n.invalid(llvm::toString(batch.takeError()));
  Dims shape = *batch;
  shape.append({rows, columns});
  VMPACK_CHECK(n.checkShape(shape));
  Tensor product;
  if (isDim(emit.productOf(batchB), 1)) { // one matrix for all batches: their rows are one matrix
    Dims all = *batch;
    all.push_back(rows);
    product = emit.matmul(emit.reshape(a, {emit.productOf(all), inner}), emit.reshape(b, {inner, columns}));
  } else {
    Dims wholeA = *batch, wholeB = *batch;
    wholeA.append({rows, inner});
    wholeB.append({inner, columns});
    VMPACK_TRY(a, emit.expand(a, wholeA));
    VMPACK_TRY(b, emit.expand(b, wholeB));
    Dim count = emit.productOf(*batch);
    if (isDim(count, 1))
      product = emit.matmul(emit.reshape(a, {rows, inner}), emit.reshape(b, {inner, columns}));
    else
      product = emit.matmul(emit.reshape(a, {count, rows, inner}), emit.reshape(b, {count, inner, columns}));
  }
  if (dropColumn)
    shape.pop_back();
  if (dropRow)
    shape.erase(shape.end() - (dropColumn ? 1 : 2));
  return emit.reshape(product, shape);
}

static llvm::Error matmul(Node &n) {
  VMPACK_CHECK(n.checkSameElem());
  VMPACK_TRY(Tensor product, multiplyMatrices(n, n.input(0), n.input(1)));
  n.output(product);
  return llvm::Error::success();
}

llvm::ArrayRef<Op> vmpack::frontend::matmulOps() {
  static const Op ops[] = {
      {"Gemm", 1, 2, 3, Types::Numeric, gemm},
      {"MatMul", 1, 2, 2, Types::Numeric, matmul},
  };
  return ops;
}
