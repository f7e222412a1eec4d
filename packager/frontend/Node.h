//===- Node.h - one ONNX node as its emit function sees it ----------------------------------------------===//
#ifndef VMPACK_FRONTEND_NODE_H
#define VMPACK_FRONTEND_NODE_H

#include "packager/frontend/Emitter.h"

#include "llvm/ADT/StringRef.h"
#include "llvm/ADT/Twine.h"

#include <functional>

namespace onnx {
class AttributeProto;
class GraphProto;
class NodeProto;
class TensorProto;
} // namespace onnx

namespace vmpack::frontend {

/// What vmpack cannot do, as opposed to what is wrong: such errors are collected over the whole model.
class UnsupportedError : public llvm::ErrorInfo<UnsupportedError> {
public:
  static char ID;
  explicit UnsupportedError(std::string reason) : reason(std::move(reason)) {}
  void log(llvm::raw_ostream &stream) const override { stream << reason; }
  std::error_code convertToErrorCode() const override { return std::make_error_code(std::errc::not_supported); }

private:
  std::string reason;
};

/// Reads a tensor that a model holds: initializers, attributes. Implemented by the importer, which knows the folder.
using TensorReader = std::function<llvm::Expected<Tensor>(const onnx::TensorProto &)>;

class Node {
public:
  Node(Emitter &emit, const onnx::NodeProto &proto, int64_t opset, TensorReader reader)
      : emit(emit), proto(proto), opset(opset), reader(std::move(reader)) {}

  Emitter &emit;
  const onnx::NodeProto &proto;
  /// The opset version of the node's domain.
  int64_t opset;

  llvm::SmallVector<Tensor> inputs; ///< an absent optional one is a false Tensor
  llvm::SmallVector<Tensor> outputs;

  bool hasInput(size_t index) const { return index < inputs.size() && inputs[index]; }
  /// An input that the table's row promises to be there.
  const Tensor &input(size_t index) const { return inputs[index]; }
  size_t outputCount() const;
  bool hasOutput(size_t index) const;
  void output(Tensor tensor) { outputs.push_back(std::move(tensor)); }

  // Attributes. A wrong type is noted, and reported once the node is done; the default is used till then.
  bool hasAttribute(llvm::StringRef name);
  int64_t integer(llvm::StringRef name, int64_t fallback);
  double real(llvm::StringRef name, double fallback);
  std::string string(llvm::StringRef name, llvm::StringRef fallback);
  Ints integers(llvm::StringRef name, Ints fallback = {});
  llvm::SmallVector<double> reals(llvm::StringRef name);
  llvm::SmallVector<std::string> strings(llvm::StringRef name);
  llvm::Expected<Tensor> tensor(llvm::StringRef name);

  /// The elements of an integer input as numbers or sizes; unsupported when they are known only at run time.
  llvm::Expected<Ints> knownIntegers(size_t input);
  llvm::Expected<Dims> knownDims(size_t input);
  llvm::Expected<Number> knownNumber(size_t input);
  /// An axis counted from either end, checked against a rank.
  llvm::Expected<int64_t> axis(int64_t value, int64_t rank);
  /// Sorted axes without repetition.
  llvm::Expected<Ints> axes(llvm::ArrayRef<int64_t> values, int64_t rank);

  /// Whether a tensor of this shape can be: no negative dim, bytes that fit 62 bits.
  llvm::Error checkShape(llvm::ArrayRef<Dim> shape);
  llvm::Error checkRank(size_t input, int64_t minimum, int64_t maximum = INT64_MAX);
  llvm::Error checkSameElem();

  llvm::Error unsupported(const llvm::Twine &reason);
  /// The node is wrong.
  llvm::Error invalid(const llvm::Twine &reason);
  /// "node 'conv1' (Conv)"
  std::string name() const;
  /// What was noted about attributes.
  llvm::Error attributeError();

private:
  const onnx::AttributeProto *find(llvm::StringRef name, int type);
  TensorReader reader;
  std::string noted;
};

using Emit = llvm::Error (*)(Node &);

/// Element types that an op is emitted for, by its first input.
enum class Types : uint8_t { All, Numeric, Float, Integer, Bool };

/// One row of the table of ops.
struct Op {
  llvm::StringRef name;
  int64_t since;        ///< the first opset it is emitted for
  int minimum, maximum; ///< inputs; maximum -1: any number
  Types types;
  Emit emit;
  /// float16 and bfloat16 are cast to float before, and back after.
  bool widens = true;
  llvm::StringRef domain = "";
  int64_t until = INT64_MAX; ///< the last opset
};

/// The row for a node, or null.
const Op *findOp(llvm::StringRef domain, llvm::StringRef name, int64_t opset);
llvm::ArrayRef<llvm::ArrayRef<Op>> allOps();

/// The newest opset of the standard domain that is known.
inline constexpr int64_t newestOpset = 24;

/// numpy.matmul of two tensors of one type, for ops made of it.
llvm::Expected<Tensor> multiplyMatrices(Node &node, Tensor a, Tensor b);

/// A convolution as the attributes of `node` say, for ops made of it; a false bias is none.
llvm::Expected<Tensor> convolve(Node &node, const Tensor &x, const Tensor &weights, const Tensor &bias);

/// The logarithm of the softmax along an axis.
Tensor logSoftmaxOf(Emitter &emit, const Tensor &x, int64_t axis);

// One list a family, each in ops/FAMILY.cpp.
llvm::ArrayRef<Op> elementwiseOps();
llvm::ArrayRef<Op> activationOps();
llvm::ArrayRef<Op> shapeOps();
llvm::ArrayRef<Op> sliceOps();
llvm::ArrayRef<Op> gatherOps();
llvm::ArrayRef<Op> reduceOps();
llvm::ArrayRef<Op> matmulOps();
llvm::ArrayRef<Op> convOps();
llvm::ArrayRef<Op> poolOps();
llvm::ArrayRef<Op> normalizationOps();
llvm::ArrayRef<Op> resizeOps();
llvm::ArrayRef<Op> quantizeOps();
llvm::ArrayRef<Op> lossOps();
llvm::ArrayRef<Op> recurrentOps();
llvm::ArrayRef<Op> sampleOps();

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_NODE_H
