//===- Lowering.h - from the imported form to the LLVM dialect ------------------------------------------===//
#ifndef VMPACK_LOWERING_LOWERING_H
#define VMPACK_LOWERING_LOWERING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace vmpack::lowering {

/// Where the pipeline stops. `Lowered` is one step before LLVM: dispatches and schedules on memrefs and loops.
enum class Stage { Lowered, Llvm };

struct LoweringOptions {
  bool winograd = true; ///< 3x3 convolutions by Winograd's algorithm where that is faster, at a little less precision
  bool verbose = false; ///< name every pass on standard error as it starts
};

/// Lowers `module` (the imported form, see frontend/Frontend.h) in place. Diagnostics go to the context; on failure the
/// module is in no defined state.
mlir::LogicalResult lower(mlir::ModuleOp module, Stage stage, const LoweringOptions &options);

/// The dialects and interfaces that the passes need.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_LOWERING_H
