//===- MlirImporter.h - MLIR from other producers -------------------------------------------------------===//
#ifndef VMPACK_FRONTEND_MLIRIMPORTER_H
#define VMPACK_FRONTEND_MLIRIMPORTER_H

#include "packager/frontend/Frontend.h"

#include "llvm/Support/MemoryBuffer.h"

namespace vmpack::frontend {

/// Parses and checks a module of text or bytecode. Errors have the diagnostics with file:line:column.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importMlir(mlir::MLIRContext &context, llvm::StringRef path,
                                                             std::unique_ptr<llvm::MemoryBuffer> buffer,
                                                             const ImportOptions &options);

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_MLIRIMPORTER_H
