//===- OnnxImporter.h - one ONNX model into one ModuleOp ------------------------------------------------===//
//
//   check model ─► arguments, symbols, initializers ─► nodes, one by one, by the table of ops ─► results
//
// What is malformed ends the import at once. What is not supported is noted, its outputs are unknown from then on, and
// the import goes on, so that the error at the end lists every such node.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_FRONTEND_ONNXIMPORTER_H
#define VMPACK_FRONTEND_ONNXIMPORTER_H

#include "packager/frontend/Frontend.h"
#include "packager/frontend/Node.h"
#include "packager/frontend/OnnxTensors.h"

#include "mlir/Dialect/Func/IR/FuncOps.h"

namespace onnx {
class ModelProto;
class ValueInfoProto;
} // namespace onnx

namespace vmpack::frontend {

class OnnxImporter {
public:
  OnnxImporter(mlir::MLIRContext &context, llvm::StringRef path, const ImportOptions &options);
  llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> import(llvm::MemoryBufferRef buffer);

private:
  /// Values by name. A false Tensor is what an unsupported node would have made.
  using Scope = llvm::StringMap<Tensor>;

  llvm::Error readOpsets(const onnx::ModelProto &model);
  llvm::Error readInitializers(const onnx::GraphProto &graph, Scope &scope);
  llvm::Error readFixedInputs(const onnx::GraphProto &graph, Scope &scope);
  llvm::Error makeArguments(const onnx::GraphProto &graph, Scope &scope);
  llvm::Expected<Tensor> argumentOf(const onnx::ValueInfoProto &input);
  llvm::Error importNodes(const onnx::GraphProto &graph, Scope &scope);
  llvm::Error importNode(const onnx::NodeProto &proto, size_t index, Scope &scope);
  llvm::Expected<bool> importBranch(Node &node, Scope &scope);
  llvm::Error emitNode(const Op &op, Node &node);
  llvm::Error makeResults(const onnx::GraphProto &graph, Scope &scope);
  llvm::Error finish();
  mlir::ArrayAttr dimsAttribute(llvm::ArrayRef<Dim> dims);
  void annotate(bool argument, unsigned index, llvm::StringRef name, const Tensor &tensor);
  std::string freshDimName();

  std::string path;
  const ImportOptions &options;
  Emitter emit;
  std::unique_ptr<OnnxTensors> tensors;
  llvm::StringMap<int64_t> opsets;
  llvm::StringMap<Dim> symbols;
  llvm::StringMap<char> dimNames;
  llvm::SmallVector<std::string> unsupported;
  mlir::OwningOpRef<mlir::ModuleOp> module;
  mlir::func::FuncOp function;
};

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_ONNXIMPORTER_H
