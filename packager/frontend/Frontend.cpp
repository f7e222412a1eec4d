#include "packager/frontend/Frontend.h"

#include "packager/frontend/MlirImporter.h"
#include "packager/frontend/OnnxImporter.h"

#include "mlir/Dialect/Affine/IR/AffineOps.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/Dialect/Tensor/IR/Tensor.h"
#include "mlir/Dialect/Tosa/IR/TosaOps.h"

using namespace vmpack::frontend;

void vmpack::frontend::registerDialects(mlir::DialectRegistry &registry) {
  registry.insert<mlir::affine::AffineDialect, mlir::arith::ArithDialect, mlir::func::FuncDialect,
                  mlir::linalg::LinalgDialect, mlir::math::MathDialect, mlir::scf::SCFDialect,
                  mlir::tensor::TensorDialect, mlir::tosa::TosaDialect>();
}

namespace {
enum class Format { Onnx, Mlir };
} // namespace

/// MLIR bytecode starts with "ML\xefR"; MLIR text is text, and a protobuf has bytes that no text has in its first few.
static Format sniff(llvm::StringRef bytes) {
  if (bytes.starts_with("ML\xefR"))
    return Format::Mlir;
  // ModelProto starts with a field's tag: ir_version (08), a string (12, 1a, 22 ...) or the opset import (42).
  llvm::StringRef head = bytes.take_front(256);
  for (unsigned char byte : head)
    if (byte < 0x20 && byte != '\n' && byte != '\r' && byte != '\t' && byte != '\f')
      return Format::Onnx;
  return Format::Mlir;
}

llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>>
vmpack::frontend::importModel(mlir::MLIRContext &context, llvm::StringRef path, const ImportOptions &options) {
  auto failed = [&](llvm::StringRef reason) { return llvm::createStringError((path + ": " + reason).str()); };
  auto file = llvm::MemoryBuffer::getFile(path, /*IsText=*/false, /*RequiresNullTerminator=*/false);
  if (!file)
    return failed(file.getError().message());
  if ((*file)->getBufferSize() == 0)
    return failed("the file is empty");
  mlir::DialectRegistry registry;
  registerDialects(registry);
  context.appendDialectRegistry(registry);
  if (sniff((*file)->getBuffer()) == Format::Mlir) {
    // The parser wants a terminated buffer, which a mapped file is not.
    auto copy = llvm::MemoryBuffer::getMemBufferCopy((*file)->getBuffer(), path);
    auto module = importMlir(context, path, std::move(copy), options);
    if (!module)
      return failed("\n" + llvm::toString(module.takeError()));
    return module;
  }
  context.loadAllAvailableDialects();
  auto module = OnnxImporter(context, path, options).import(**file);
  if (!module)
    return failed(llvm::toString(module.takeError()));
  return module;
}
