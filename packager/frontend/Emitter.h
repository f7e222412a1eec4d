//===- Emitter.h - the importer's vocabulary of IR ------------------------------------------------------===//
//
// Ops are written in these words; only the Emit*.cpp files know linalg and tensor. Every word folds when its operands
// are known: to bytes, or to expressions of the symbolic dims. Preconditions (ranks, axes, sizes) are the caller's to
// check, since the builders of MLIR do not return errors.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_FRONTEND_EMITTER_H
#define VMPACK_FRONTEND_EMITTER_H

#include "packager/frontend/Scalar.h"

#include "llvm/ADT/DenseMap.h"
#include "llvm/ADT/STLFunctionalExtras.h"

namespace vmpack::frontend {

/// Element-wise code: operands to result.
using Body = llvm::function_ref<Scalar(ScalarBuilder &, llvm::ArrayRef<Scalar>)>;
/// Element-wise code by position.
using Generator = llvm::function_ref<Scalar(ScalarBuilder &, llvm::ArrayRef<Scalar>)>;
/// One step of a reduction: accumulator, operand.
using Step = llvm::function_ref<Scalar(ScalarBuilder &, Scalar, Scalar)>;

/// One write of a scatter: position, the tensor so far → the index to write (`target`) and the value.
using ScatterBody = llvm::function_ref<Scalar(ScalarBuilder &, llvm::ArrayRef<Scalar> position, const Tensor &now,
                                              llvm::SmallVectorImpl<Scalar> &target)>;

/// One step of a loop: states to states.
using LoopBody = llvm::function_ref<llvm::SmallVector<Tensor>(Dim step, llvm::ArrayRef<Tensor> states)>;

/// A window over spatial dims, as convolutions and pools have it.
struct Window {
  Ints kernel, strides, dilations;
  Dims padBefore, padAfter;
};

class Emitter {
public:
  /// A symbolic dim: dim `axis` of function argument `argument`, or a value computed on the way.
  struct Symbol {
    std::string name;
    mlir::Value argument;
    unsigned axis = 0;
    mlir::Value computed;
  };

  Emitter(mlir::MLIRContext *context) : context(context), builder(context), location(builder.getUnknownLoc()) {}

  mlir::MLIRContext *context;
  mlir::OpBuilder builder;
  mlir::Location location;
  /// The function's first block: sizes and constants go to its start, so that they are there for every node.
  mlir::Block *entry = nullptr;
  std::vector<Symbol> symbols;
  llvm::SmallVector<std::string> symbolNames;

  Dim dim(int64_t size) { return mlir::getAffineConstantExpr(size, context); }
  Dims dims(llvm::ArrayRef<int64_t> sizes);
  Dim addSymbol(Symbol symbol);
  /// Puts sums and quotients into one order, so that equal sizes become equal expressions.
  Dim simplify(Dim dim);
  Dim productOf(llvm::ArrayRef<Dim> dims) { return frontend::productOf(context, dims); }
  std::string describe(const Tensor &tensor) { return frontend::describe(tensor.shape, symbolNames); }
  std::string describe(llvm::ArrayRef<Dim> dims) { return frontend::describe(dims, symbolNames); }

  // Making tensors.
  Tensor constant(Elem elem, llvm::ArrayRef<int64_t> shape, std::string bytes);
  Tensor splat(Elem elem, llvm::ArrayRef<Dim> shape, Number number);
  Tensor real(Elem elem, double value) { return splat(elem, {}, converted(Elem::F64, elem, Number{value, 0})); }
  Tensor integers(llvm::ArrayRef<int64_t> values);
  Tensor expressions(Elem elem, llvm::ArrayRef<Dim> elements, llvm::ArrayRef<Dim> shape);
  Tensor ofValue(Elem elem, llvm::ArrayRef<Dim> shape, mlir::Value value);
  /// The IR of a tensor, made when first asked for.
  mlir::Value valueOf(Tensor &tensor);
  mlir::Value valueOf(const Tensor &tensor);
  /// The IR of a size.
  mlir::Value sizeOf(Dim dim);
  mlir::RankedTensorType typeOf(Elem elem, llvm::ArrayRef<Dim> shape);

  // Element-wise. `broadcast` joins shapes as numpy does.
  llvm::Expected<Dims> broadcast(llvm::ArrayRef<Dims> shapes);
  /// Operands broadcast to each other; the result has the joint shape.
  llvm::Expected<Tensor> pointwise(Elem elem, llvm::ArrayRef<Tensor> operands, Body body);
  /// The same when the joint shape is known (and right).
  Tensor pointwiseTo(Elem elem, llvm::ArrayRef<Dim> shape, llvm::ArrayRef<Tensor> operands, Body body);
  Tensor cast(const Tensor &tensor, Elem to);
  /// Every element from its position (index scalars).
  Tensor generate(Elem elem, llvm::ArrayRef<Dim> shape, Generator body);

  // Reductions over `axes` (sorted, unique); the reduced dims become 1, or go.
  Tensor reduce(const Tensor &tensor, llvm::ArrayRef<int64_t> axes, bool keepDims, Elem elem, Number initial,
                Step step);
  /// The position of the largest or smallest element along `axis`, as int64.
  Tensor argReduce(const Tensor &tensor, int64_t axis, bool keepDims, bool largest, bool last);
  /// Element i is the sum over those before it (with itself, unless `exclusive`).
  Tensor cumulativeSum(const Tensor &tensor, int64_t axis, bool exclusive, bool reverse);

  // Moving elements.
  Tensor reshape(const Tensor &tensor, llvm::ArrayRef<Dim> shape);
  Tensor transpose(const Tensor &tensor, llvm::ArrayRef<int64_t> permutation);
  /// `strides` are positive.
  Tensor slice(const Tensor &tensor, llvm::ArrayRef<Dim> offsets, llvm::ArrayRef<Dim> sizes,
               llvm::ArrayRef<int64_t> strides);
  Tensor concat(llvm::ArrayRef<Tensor> tensors, int64_t axis);
  /// Pads with a number; paddings are not negative.
  Tensor pad(const Tensor &tensor, llvm::ArrayRef<Dim> before, llvm::ArrayRef<Dim> after, Number number);
  /// Reverses the order along axes.
  Tensor flip(const Tensor &tensor, llvm::ArrayRef<int64_t> axes);
  /// Puts strides[i] - 1 zeros between neighbours along axis i.
  Tensor spread(const Tensor &tensor, llvm::ArrayRef<int64_t> strides);
  /// `part` written over `whole` at `offsets`.
  Tensor insert(const Tensor &part, const Tensor &whole, llvm::ArrayRef<Dim> offsets);
  llvm::Expected<Tensor> expand(const Tensor &tensor, llvm::ArrayRef<Dim> shape);
  /// For updates that may hit the same element: every position of `shape` in row-major order writes one element of a
  /// copy of `data`, which `body` sees as it is by then; it fills `target` with the index to write.
  Tensor scatter(const Tensor &data, llvm::ArrayRef<Dim> shape, ScatterBody body);

  /// Runs `body` for the steps 0 … count - 1 over states whose shapes stay. A few steps are unrolled.
  llvm::SmallVector<Tensor> loop(Dim count, llvm::ArrayRef<Tensor> states, LoopBody body);

  // Contractions.
  /// [M, K] x [K, N] or [B, M, K] x [B, K, N].
  Tensor matmul(const Tensor &a, const Tensor &b);
  /// x: NHWC, already padded; weights: HWCF. -> NHWC of `shape`.
  Tensor convolution(const Tensor &x, const Tensor &weights, const Window &window, llvm::ArrayRef<Dim> shape);
  /// weights: HWC.
  Tensor depthwiseConvolution(const Tensor &x, const Tensor &weights, const Window &window, llvm::ArrayRef<Dim> shape);
  /// x: NHWC, already padded.
  Tensor pool(const Tensor &x, const Window &window, llvm::ArrayRef<Dim> shape, bool maximum);

private:
  /// Runs `make` with the builder at the end of the sizes and constants.
  mlir::Value inPrologue(llvm::function_ref<mlir::Value()> make);
  mlir::Value empty(Elem elem, llvm::ArrayRef<Dim> shape);
  mlir::Value filled(Elem elem, llvm::ArrayRef<Dim> shape, Number number);
  mlir::Value constantValue(Elem elem, llvm::ArrayRef<Dim> shape, const Constant &constant);
  std::optional<Tensor> foldPointwise(Elem elem, llvm::ArrayRef<Dim> shape, llvm::ArrayRef<Tensor> operands, Body body);
  std::optional<Tensor> foldGenerate(Elem elem, llvm::ArrayRef<Dim> shape, Generator body);
  /// Moves known elements: `source(i)` says which element of which operand element i is.
  Tensor gatherKnown(llvm::ArrayRef<Tensor> sources, llvm::ArrayRef<Dim> shape,
                     llvm::function_ref<std::pair<unsigned, int64_t>(llvm::ArrayRef<int64_t>)> source);
  mlir::Value dropUnits(const Tensor &tensor, llvm::ArrayRef<bool> dropped);

  mlir::Operation *prologueEnd = nullptr;
  llvm::DenseMap<Dim, mlir::Value> sizes;
  llvm::DenseMap<std::pair<const void *, mlir::Type>, mlir::Value> constants;
  /// Keeps what `constants` is keyed by.
  std::vector<std::shared_ptr<const void>> kept;

  friend class ScalarBuilder;
};

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_EMITTER_H
