//===- OnnxTensors.h - the tensors that a model holds ---------------------------------------------------===//
#ifndef VMPACK_FRONTEND_ONNXTENSORS_H
#define VMPACK_FRONTEND_ONNXTENSORS_H

#include "packager/frontend/Tensor.h"

#include "llvm/ADT/StringMap.h"
#include "llvm/Support/MemoryBuffer.h"

namespace onnx {
class TensorProto;
} // namespace onnx

namespace vmpack::frontend {

/// Reads TensorProtos without copying: raw data stays in the model, external data is mapped from files in its folder.
class OnnxTensors {
public:
  /// `model` keeps the protos' memory alive; `folder` is where external data may lie.
  OnnxTensors(mlir::MLIRContext *context, std::shared_ptr<const void> model, std::string folder)
      : context(context), model(std::move(model)), folder(std::move(folder)) {}

  llvm::Expected<Tensor> read(const onnx::TensorProto &proto);

private:
  llvm::Expected<std::shared_ptr<Constant>> readExternal(const onnx::TensorProto &proto);
  llvm::Expected<std::shared_ptr<Constant>> readTyped(const onnx::TensorProto &proto, Elem elem, int64_t count);
  llvm::Expected<std::shared_ptr<llvm::MemoryBuffer>> open(llvm::StringRef location);

  mlir::MLIRContext *context;
  std::shared_ptr<const void> model;
  std::string folder;
  llvm::StringMap<std::shared_ptr<llvm::MemoryBuffer>> files;
};

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_ONNXTENSORS_H
