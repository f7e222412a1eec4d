//===- Translation.h - from the LLVM dialect to the shared module ---------------------------------------===//
#ifndef VMPACK_TRANSLATION_TRANSLATION_H
#define VMPACK_TRANSLATION_TRANSLATION_H

#include "mlir/IR/BuiltinOps.h"
#include "targets/SharedModule.h"
#include "llvm/Support/Error.h"

namespace vmpack::translation {

/// Translates a fully lowered module. `name` becomes a valid C identifier. Deterministic: same input, same bytes.
llvm::Expected<targets::SharedModule> translate(mlir::ModuleOp module, llvm::StringRef name);

/// The dialects' translation interfaces.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace vmpack::translation

#endif // VMPACK_TRANSLATION_TRANSLATION_H
