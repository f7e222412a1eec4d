#include "packager/frontend/Node.h"

#include <onnx/onnx_pb.h>

using namespace vmpack::frontend;

char UnsupportedError::ID = 0;

size_t Node::outputCount() const { return proto.output_size(); }
bool Node::hasOutput(size_t index) const {
  return index < outputCount() && !proto.output(static_cast<int>(index)).empty();
}

const onnx::AttributeProto *Node::find(llvm::StringRef name, int type) {
  for (const onnx::AttributeProto &attribute : proto.attribute()) {
    if (attribute.name() != name)
      continue;
    if (attribute.type() == type || type == 0)
      return &attribute;
    // Old exporters left the type out.
    bool untyped = attribute.type() == onnx::AttributeProto::UNDEFINED;
    if (untyped)
      return &attribute;
    if (noted.empty())
      noted = "attribute '" + name.str() + "' has the wrong type";
    return nullptr;
  }
  return nullptr;
}

bool Node::hasAttribute(llvm::StringRef name) { return find(name, 0); }

int64_t Node::integer(llvm::StringRef name, int64_t fallback) {
  const onnx::AttributeProto *attribute = find(name, onnx::AttributeProto::INT);
  return attribute ? attribute->i() : fallback;
}

double Node::real(llvm::StringRef name, double fallback) {
  const onnx::AttributeProto *attribute = find(name, onnx::AttributeProto::FLOAT);
  return attribute ? attribute->f() : static_cast<float>(fallback);
}

std::string Node::string(llvm::StringRef name, llvm::StringRef fallback) {
  const onnx::AttributeProto *attribute = find(name, onnx::AttributeProto::STRING);
  return attribute ? attribute->s() : fallback.str();
}

Ints Node::integers(llvm::StringRef name, Ints fallback) {
  const onnx::AttributeProto *attribute = find(name, onnx::AttributeProto::INTS);
  return attribute ? Ints(attribute->ints().begin(), attribute->ints().end()) : fallback;
}

llvm::SmallVector<double> Node::reals(llvm::StringRef name) {
  const onnx::AttributeProto *attribute = find(name, onnx::AttributeProto::FLOATS);
  llvm::SmallVector<double> values;
  if (attribute)
    values.append(attribute->floats().begin(), attribute->floats().end());
  return values;
}

llvm::SmallVector<std::string> Node::strings(llvm::StringRef name) {
  const onnx::AttributeProto *attribute = find(name, onnx::AttributeProto::STRINGS);
  llvm::SmallVector<std::string> values;
  if (attribute)
    values.append(attribute->strings().begin(), attribute->strings().end());
  return values;
}

llvm::Expected<Tensor> Node::tensor(llvm::StringRef name) {
  const onnx::AttributeProto *attribute = find(name, onnx::AttributeProto::TENSOR);
  if (!attribute || !attribute->has_t())
    return invalid("attribute '" + name + "' is missing");
  return reader(attribute->t());
}

llvm::Expected<Dims> Node::knownDims(size_t index) {
  const Tensor &tensor = input(index);
  if (!isInteger(tensor.elem))
    return invalid("input " + llvm::Twine(index) + " is " + nameOf(tensor.elem) +
                   " when it should be an integer tensor");
  if (tensor.rank() > 1)
    return invalid("input " + llvm::Twine(index) + " has rank " + llvm::Twine(tensor.rank()) + " when it should be 1");
  Dims dims;
  if (tensor.elements)
    dims.append(tensor.elements->begin(), tensor.elements->end());
  else if (tensor.constant)
    for (int64_t i = 0; i < tensor.constantCount(); ++i)
      dims.push_back(emit.dim(readElement(tensor, i).integer));
  else
    return unsupported("input " + llvm::Twine(index) + " must be known when the model is compiled");
  return dims;
}

llvm::Expected<Ints> Node::knownIntegers(size_t index) {
  VMPACK_TRY(Dims dims, knownDims(index));
  if (std::optional<Ints> values = staticDims(dims))
    return *values;
  return unsupported("input " + llvm::Twine(index) + " depends on symbolic dims; fix them with --dim");
}

llvm::Expected<Number> Node::knownNumber(size_t index) {
  const Tensor &tensor = input(index);
  if (!tensor.constant)
    return unsupported("input " + llvm::Twine(index) + " must be known when the model is compiled");
  if (tensor.constantCount() != 1)
    return invalid("input " + llvm::Twine(index) + " has " + llvm::Twine(tensor.constantCount()) +
                   " elements when it should have 1");
  return readElement(tensor, 0);
}

llvm::Expected<int64_t> Node::axis(int64_t value, int64_t rank) {
  if (value < -rank || value >= rank)
    return invalid("axis " + llvm::Twine(value) + " is out of range for rank " + llvm::Twine(rank));
  return value < 0 ? value + rank : value;
}

llvm::Expected<Ints> Node::axes(llvm::ArrayRef<int64_t> values, int64_t rank) {
  Ints result;
  for (int64_t value : values) {
    VMPACK_TRY(int64_t checked, axis(value, rank));
    if (llvm::is_contained(result, checked))
      return invalid("axis " + llvm::Twine(value) + " is given twice");
    result.push_back(checked);
  }
  llvm::sort(result);
  return result;
}

llvm::Error Node::checkShape(llvm::ArrayRef<Dim> shape) {
  if (shape.size() > 16)
    return unsupported("rank " + llvm::Twine(shape.size()) + " is above 16");
  int64_t count = 16; // bytes of the widest element, and some
  for (Dim dim : shape) {
    std::optional<int64_t> size = constantDim(dim);
    if (size && *size < 0)
      return invalid("the shape " + emit.describe(shape) + " has a negative dim");
    if (size && *size > 0 && (__builtin_mul_overflow(count, *size, &count) || count > INT64_MAX / 4))
      return invalid("the shape " + emit.describe(shape) + " has too many elements");
  }
  return llvm::Error::success();
}

llvm::Error Node::checkRank(size_t index, int64_t minimum, int64_t maximum) {
  int64_t rank = input(index).rank();
  if (rank >= minimum && rank <= maximum)
    return llvm::Error::success();
  std::string wanted = minimum == maximum     ? std::to_string(minimum)
                       : maximum == INT64_MAX ? "at least " + std::to_string(minimum)
                                              : std::to_string(minimum) + " to " + std::to_string(maximum);
  return invalid("input " + llvm::Twine(index) + " has rank " + llvm::Twine(rank) + " when it should be " + wanted);
}

llvm::Error Node::checkSameElem() {
  for (const Tensor &tensor : inputs)
    if (tensor && tensor.elem != inputs.front().elem)
      return invalid("inputs are " + nameOf(inputs.front().elem) + " and " + nameOf(tensor.elem) +
                     " when they should be of one type");
  return llvm::Error::success();
}

llvm::Error Node::unsupported(const llvm::Twine &reason) { return llvm::make_error<UnsupportedError>(reason.str()); }

std::string Node::name() const {
  std::string label = proto.name();
  if (label.empty() && proto.output_size())
    label = proto.output(0);
  return "node '" + label + "' (" + proto.op_type() + ")";
}

llvm::Error Node::invalid(const llvm::Twine &reason) {
  return llvm::createStringError((llvm::Twine(name()) + ": " + reason).str());
}

llvm::Error Node::attributeError() { return noted.empty() ? llvm::Error::success() : invalid(noted); }

llvm::ArrayRef<llvm::ArrayRef<Op>> vmpack::frontend::allOps() {
  static const llvm::ArrayRef<Op> families[] = {
      elementwiseOps(), activationOps(), shapeOps(), sliceOps(),     gatherOps(),
      reduceOps(),      matmulOps(),     convOps(),  poolOps(),      normalizationOps(),
      resizeOps(),      quantizeOps(),   lossOps(),  recurrentOps(), sampleOps(),
  };
  return families;
}

const Op *vmpack::frontend::findOp(llvm::StringRef domain, llvm::StringRef name, int64_t opset) {
  if (domain == "ai.onnx")
    domain = "";
  for (llvm::ArrayRef<Op> family : allOps())
    for (const Op &op : family)
      if (op.name == name && op.domain == domain && opset >= op.since && opset <= op.until)
        return &op;
  return nullptr;
}
