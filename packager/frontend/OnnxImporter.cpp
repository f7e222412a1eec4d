#include "packager/frontend/OnnxImporter.h"

#include "mlir/IR/Verifier.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/Path.h"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/stubs/logging.h>
#include <onnx/onnx_pb.h>

using namespace vmpack::frontend;
namespace func = mlir::func;

/// Symbolic dims beyond this are a broken model.
static constexpr size_t maximumSymbols = 4096;

OnnxImporter::OnnxImporter(mlir::MLIRContext &context, llvm::StringRef path, const ImportOptions &options)
    : path(path), options(options), emit(&context) {}

static llvm::Error wrong(const llvm::Twine &reason) { return llvm::createStringError(reason.str()); }

llvm::Error OnnxImporter::readOpsets(const onnx::ModelProto &model) {
  for (const auto &import : model.opset_import()) {
    llvm::StringRef domain = import.domain() == "ai.onnx" ? "" : llvm::StringRef(import.domain());
    if (!opsets.try_emplace(domain, import.version()).second)
      return wrong("opset domain '" + domain + "' is imported twice");
  }
  if (opsets.empty())
    return wrong("the model imports no opset");
  auto standard = opsets.find("");
  if (standard == opsets.end()) // its nodes are of other domains
    return llvm::Error::success();
  int64_t opset = standard->second;
  if (opset < 1 || opset > newestOpset)
    return wrong("opset " + llvm::Twine(opset) + " is not supported: known are 1 to " + llvm::Twine(newestOpset));
  return llvm::Error::success();
}

llvm::Error OnnxImporter::readInitializers(const onnx::GraphProto &graph, Scope &scope) {
  if (graph.sparse_initializer_size())
    return wrong("sparse initializers are not supported");
  for (const onnx::TensorProto &proto : graph.initializer()) {
    if (proto.name().empty())
      return wrong("an initializer has no name");
    VMPACK_TRY(Tensor tensor, tensors->read(proto));
    if (!scope.try_emplace(proto.name(), tensor).second)
      return wrong("two initializers have the name '" + llvm::Twine(proto.name()) + "'");
  }
  return llvm::Error::success();
}

std::string OnnxImporter::freshDimName() {
  for (unsigned i = 0;; ++i) {
    std::string name = "d" + std::to_string(i);
    if (dimNames.try_emplace(name).second)
      return name;
  }
}

llvm::Expected<Tensor> OnnxImporter::argumentOf(const onnx::ValueInfoProto &input) {
  auto bad = [&](const llvm::Twine &reason) { return wrong("input '" + llvm::Twine(input.name()) + "' " + reason); };
  if (!input.has_type() || !input.type().has_tensor_type())
    return bad("is no tensor, which is not supported");
  const auto &type = input.type().tensor_type();
  Elem elem = elemOf(type.elem_type());
  if (elem == Elem::None || elem == Elem::String)
    return bad("has element type " + llvm::Twine(type.elem_type()) + ", which is not supported");
  if (!type.has_shape())
    return bad("has no known rank, which is not supported");
  Dims shape;
  for (const auto &dim : type.shape().dim()) {
    if (dim.has_dim_value()) {
      if (dim.dim_value() < 0)
        return bad("has the negative dim " + llvm::Twine(dim.dim_value()));
      shape.push_back(emit.dim(dim.dim_value()));
      continue;
    }
    std::string name = dim.has_dim_param() && !dim.dim_param().empty() ? dim.dim_param() : freshDimName();
    Dim &symbol = symbols[name];
    auto bound = options.dims.find(name);
    if (!symbol && bound != options.dims.end() && bound->second.minimum == bound->second.maximum)
      symbol = emit.dim(bound->second.minimum);
    else if (!symbol)
      symbol = emit.addSymbol({name, nullptr, 0, nullptr});
    shape.push_back(symbol);
  }
  if (emit.symbols.size() > maximumSymbols)
    return bad("brings the symbolic dims above " + llvm::Twine(maximumSymbols));
  onnx::NodeProto none;
  Node checker(emit, none, 1, [](const onnx::TensorProto &) -> llvm::Expected<Tensor> { return wrong(""); });
  if (llvm::Error error = checker.checkShape(shape)) {
    llvm::consumeError(std::move(error));
    return bad("has a shape that cannot be: " + emit.describe(shape));
  }
  return emit.ofValue(elem, shape, nullptr);
}

llvm::Error OnnxImporter::readFixedInputs(const onnx::GraphProto &graph, Scope &scope) {
  for (const auto &fixed : options.constants) {
    bool isInput = llvm::any_of(graph.input(), [&](const auto &input) { return input.name() == fixed.getKey(); });
    if (!isInput)
      return wrong("the model has no input '" + fixed.getKey() + "'");
    auto proto = std::make_shared<onnx::TensorProto>();
    if (!proto->ParseFromString(fixed.second) || proto->data_location() == onnx::TensorProto::EXTERNAL)
      return wrong("the constant for input '" + fixed.getKey() + "' is no tensor");
    VMPACK_TRY(Tensor tensor, OnnxTensors(emit.context, proto, "").read(*proto));
    scope[fixed.getKey()] = tensor;
  }
  return llvm::Error::success();
}

llvm::Error OnnxImporter::makeArguments(const onnx::GraphProto &graph, Scope &scope) {
  for (const auto &input : graph.input()) // names that are taken, before any is made up
    if (input.has_type() && input.type().has_tensor_type())
      for (const auto &dim : input.type().tensor_type().shape().dim())
        dimNames.try_emplace(dim.dim_param());
  llvm::SmallVector<std::pair<std::string, Tensor>> arguments;
  llvm::SmallVector<mlir::Type> types;
  for (const auto &input : graph.input()) {
    if (input.name().empty())
      return wrong("an input has no name");
    if (scope.count(input.name()) && scope[input.name()].constant)
      continue; // a default value: a constant for us
    VMPACK_TRY(Tensor tensor, argumentOf(input));
    if (!scope.try_emplace(input.name(), tensor).second)
      return wrong("two inputs have the name '" + llvm::Twine(input.name()) + "'");
    arguments.emplace_back(input.name(), tensor);
    types.push_back(emit.typeOf(tensor.elem, tensor.shape));
  }
  for (const auto &bound : options.dims) {
    if (!symbols.count(bound.getKey()))
      return wrong("the model has no symbolic dim '" + bound.getKey() + "'");
    if (bound.second.minimum < 0 || bound.second.minimum > bound.second.maximum)
      return wrong("the bounds of dim '" + bound.getKey() + "' are no range of sizes");
  }
  module = mlir::ModuleOp::create(emit.location);
  emit.builder.setInsertionPointToEnd(module->getBody());
  function = func::FuncOp::create(emit.builder, emit.location, "main", emit.builder.getFunctionType(types, {}));
  emit.entry = function.addEntryBlock();
  emit.builder.setInsertionPointToEnd(emit.entry);
  for (auto [index, argument] : llvm::enumerate(arguments)) {
    Tensor &tensor = scope[argument.first];
    tensor.value = emit.entry->getArgument(index);
    annotate(/*argument=*/true, index, argument.first, tensor);
    for (auto [axis, dim] : llvm::enumerate(tensor.shape))
      if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(dim))
        if (auto &source = emit.symbols[symbol.getPosition()]; !source.argument)
          source.argument = tensor.value, source.axis = axis;
  }
  return llvm::Error::success();
}

mlir::ArrayAttr OnnxImporter::dimsAttribute(llvm::ArrayRef<Dim> dims) {
  llvm::SmallVector<mlir::Attribute> attributes;
  for (Dim dim : dims) {
    if (std::optional<int64_t> size = constantDim(dim))
      attributes.push_back(emit.builder.getI64IntegerAttr(*size));
    else if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(dim))
      attributes.push_back(emit.builder.getStringAttr(emit.symbols[symbol.getPosition()].name));
    else
      attributes.push_back(emit.builder.getStringAttr(""));
  }
  return emit.builder.getArrayAttr(attributes);
}

void OnnxImporter::annotate(bool argument, unsigned index, llvm::StringRef name, const Tensor &tensor) {
  auto set = [&](llvm::StringRef key, mlir::Attribute value) {
    if (argument)
      function.setArgAttr(index, key, value);
    else
      function.setResultAttr(index, key, value);
  };
  set("vmpk.name", emit.builder.getStringAttr(name));
  set("vmpk.dims", dimsAttribute(tensor.shape));
  if (isUnsigned(tensor.elem))
    set("vmpk.unsigned", emit.builder.getUnitAttr());
}

/// "  'conv1' Conv (domain ai.onnx, opset 13; float, float): reason"
static std::string describeNode(const Node &node, const llvm::Twine &reason) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  const onnx::NodeProto &proto = node.proto;
  stream << "  '" << (proto.name().empty() && proto.output_size() ? proto.output(0) : proto.name()) << "' "
         << proto.op_type() << " (domain " << (proto.domain().empty() ? "ai.onnx" : proto.domain()) << ", opset "
         << node.opset << "; ";
  llvm::interleaveComma(node.inputs, stream, [&](const Tensor &input) { stream << nameOf(input.elem); });
  stream << "): " << reason;
  return text;
}

/// Casts float16 to float around an op that computes.
static Elem widen(Node &node) {
  Elem half = Elem::None;
  for (Tensor &input : node.inputs) {
    if (input.elem != Elem::F16 && input.elem != Elem::BF16)
      continue;
    half = half == Elem::None ? input.elem : half;
    input = node.emit.cast(input, Elem::F32);
  }
  return half;
}

static bool accepts(Types types, Elem elem) {
  switch (types) {
  case Types::All:
    return true;
  case Types::Numeric:
    return elem != Elem::Bool;
  case Types::Float:
    return isFloat(elem);
  case Types::Integer:
    return isInteger(elem);
  case Types::Bool:
    return elem == Elem::Bool;
  }
  return false;
}

llvm::Error OnnxImporter::emitNode(const Op &op, Node &node) {
  int given = static_cast<int>(node.inputs.size());
  for (int i = 0; i < op.minimum; ++i)
    if (!node.hasInput(i))
      return node.invalid("input " + llvm::Twine(i) + " is missing");
  if (op.maximum >= 0 && given > op.maximum)
    return node.invalid("there are " + llvm::Twine(given) + " inputs when there should be at most " +
                        llvm::Twine(op.maximum));
  if (node.hasInput(0) && !accepts(op.types, node.input(0).elem))
    return node.unsupported("the element type " + nameOf(node.input(0).elem) + " is not supported");
  Elem half = op.widens ? widen(node) : Elem::None;
  VMPACK_CHECK(op.emit(node));
  VMPACK_CHECK(node.attributeError());
  for (Tensor &output : node.outputs) {
    VMPACK_CHECK(node.checkShape(output.shape));
    if (half != Elem::None && output.elem == Elem::F32)
      output = emit.cast(output, half);
  }
  for (size_t i = node.outputs.size(); i < node.outputCount(); ++i)
    if (node.hasOutput(i))
      return node.unsupported("output " + llvm::Twine(i) + " is not supported");
  return llvm::Error::success();
}

llvm::Expected<bool> OnnxImporter::importBranch(Node &node, Scope &scope) {
  if (node.proto.op_type() != "If" || !node.proto.domain().empty() || !node.hasInput(0) || !node.input(0).constant ||
      node.input(0).elem != Elem::Bool || node.input(0).constantCount() != 1)
    return false;
  llvm::StringRef wanted = readElement(node.input(0), 0).integer ? "then_branch" : "else_branch";
  for (const onnx::AttributeProto &attribute : node.proto.attribute()) {
    if (attribute.name() != wanted || !attribute.has_g())
      continue;
    Scope inner = scope; // sees all outer values, and hides its own
    for (const onnx::TensorProto &proto : attribute.g().initializer())
      inner.erase(proto.name());
    VMPACK_CHECK(readInitializers(attribute.g(), inner));
    VMPACK_CHECK(importNodes(attribute.g(), inner));
    for (const auto &output : attribute.g().output()) {
      auto value = inner.find(output.name());
      if (value == inner.end())
        return node.invalid("the branch does not make its output '" + llvm::Twine(output.name()) + "'");
      node.outputs.push_back(value->second);
    }
    return true;
  }
  return node.invalid("attribute '" + wanted + "' is missing");
}

llvm::Error OnnxImporter::importNode(const onnx::NodeProto &proto, size_t index, Scope &scope) {
  llvm::StringRef domain = proto.domain() == "ai.onnx" ? "" : llvm::StringRef(proto.domain());
  auto opset = opsets.find(domain);
  Node node(emit, proto, opset == opsets.end() ? 0 : opset->second,
            [this](const onnx::TensorProto &tensor) { return tensors->read(tensor); });
  if (opset == opsets.end())
    return node.invalid("the model imports no opset of domain '" + domain + "'");
  bool isKnown = true;
  for (const std::string &name : proto.input()) {
    auto value = scope.find(name);
    if (!name.empty() && value == scope.end())
      return node.invalid("input '" + llvm::Twine(name) + "' is made by no node before it");
    node.inputs.push_back(name.empty() ? Tensor() : value->second);
    isKnown &= name.empty() || node.inputs.back();
  }
  std::string label = proto.name().empty() ? proto.op_type() + "_" + std::to_string(index) : proto.name();
  emit.location = mlir::NameLoc::get(emit.builder.getStringAttr(label));

  VMPACK_TRY(bool isBranch, importBranch(node, scope));
  const Op *op = findOp(domain, proto.op_type(), node.opset);
  llvm::Error error = llvm::Error::success();
  if (!isBranch && !op)
    error = node.unsupported("the op is not supported");
  else if (!isBranch && isKnown)
    error = emitNode(*op, node);
  error = llvm::handleErrors(std::move(error), [&](const UnsupportedError &reason) {
    std::string text;
    llvm::raw_string_ostream stream(text);
    reason.log(stream);
    unsupported.push_back(describeNode(node, text));
    node.outputs.clear();
  });
  if (error)
    return error;
  node.outputs.resize(std::max<size_t>(node.outputs.size(), proto.output_size()));
  for (auto [name, tensor] : llvm::zip_first(proto.output(), node.outputs))
    if (!name.empty() && !scope.try_emplace(name, tensor).second)
      return node.invalid("output '" + llvm::Twine(name) + "' has the name of another value");
  return llvm::Error::success();
}

llvm::Error OnnxImporter::importNodes(const onnx::GraphProto &graph, Scope &scope) {
  for (auto [index, node] : llvm::enumerate(graph.node()))
    VMPACK_CHECK(importNode(node, index, scope));
  return llvm::Error::success();
}

llvm::Error OnnxImporter::makeResults(const onnx::GraphProto &graph, Scope &scope) {
  llvm::SmallVector<mlir::Value> values;
  llvm::SmallVector<std::pair<std::string, Tensor>> results;
  llvm::StringMap<char> seen;
  for (const auto &output : graph.output()) {
    auto found = scope.find(output.name());
    if (found == scope.end())
      return wrong("output '" + llvm::Twine(output.name()) + "' is made by no node");
    if (!seen.try_emplace(output.name()).second)
      return wrong("two outputs have the name '" + llvm::Twine(output.name()) + "'");
    if (output.has_type() && output.type().has_tensor_type() && found->second) {
      Elem declared = elemOf(output.type().tensor_type().elem_type());
      if (declared != Elem::None && declared != found->second.elem)
        return wrong("output '" + llvm::Twine(output.name()) + "' is " + nameOf(found->second.elem) +
                     " when the model says " + nameOf(declared));
    }
    results.emplace_back(output.name(), found->second);
  }
  if (results.empty())
    return wrong("the graph has no output");
  if (!unsupported.empty())
    return wrong(llvm::Twine(unsupported.size()) + (unsupported.size() == 1 ? " node is" : " nodes are") +
                 " not supported:\n" + llvm::join(unsupported, "\n"));
  emit.location = emit.builder.getUnknownLoc();
  llvm::SmallVector<mlir::Type> types;
  for (auto &[name, tensor] : results) {
    values.push_back(emit.valueOf(tensor));
    types.push_back(values.back().getType());
  }
  func::ReturnOp::create(emit.builder, emit.location, values);
  function.setType(emit.builder.getFunctionType(function.getArgumentTypes(), types));
  for (auto [index, result] : llvm::enumerate(results))
    annotate(/*argument=*/false, index, result.first, result.second);
  return llvm::Error::success();
}

llvm::Error OnnxImporter::finish() {
  llvm::SmallVector<mlir::NamedAttribute> bounds;
  for (const auto &bound : options.dims)
    if (bound.second.minimum != bound.second.maximum)
      bounds.push_back(emit.builder.getNamedAttr(
          bound.getKey(), emit.builder.getI64ArrayAttr({bound.second.minimum, bound.second.maximum})));
  if (!bounds.empty())
    function->setAttr("vmpk.bounds", emit.builder.getDictionaryAttr(bounds));
  std::string diagnostics;
  mlir::ScopedDiagnosticHandler handler(emit.context, [&](mlir::Diagnostic &diagnostic) {
    diagnostics += (diagnostics.empty() ? "" : "\n") + diagnostic.str();
    return mlir::success();
  });
  if (mlir::failed(mlir::verify(*module)))
    return wrong("the imported module is not valid, which is a fault of vmpack: " + diagnostics);
  return llvm::Error::success();
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> OnnxImporter::import(llvm::MemoryBufferRef buffer) {
  if (buffer.getBufferSize() > INT32_MAX)
    return wrong("the protobuf has more than 2 GiB: store the weights as external data");
  google::protobuf::LogSilencer silence;
  auto model = std::make_shared<onnx::ModelProto>();
  if (!model->ParseFromArray(buffer.getBufferStart(), static_cast<int>(buffer.getBufferSize())))
    return wrong("this is no ONNX model: the protobuf does not parse");
  if (!model->has_graph())
    return wrong("this is no ONNX model: it has no graph");
  tensors = std::make_unique<OnnxTensors>(emit.context, model, llvm::sys::path::parent_path(path).str());
  Scope scope;
  VMPACK_CHECK(readOpsets(*model));
  VMPACK_CHECK(readInitializers(model->graph(), scope));
  VMPACK_CHECK(readFixedInputs(model->graph(), scope));
  VMPACK_CHECK(makeArguments(model->graph(), scope));
  VMPACK_CHECK(importNodes(model->graph(), scope));
  VMPACK_CHECK(makeResults(model->graph(), scope));
  VMPACK_CHECK(finish());
  return std::move(module);
}
