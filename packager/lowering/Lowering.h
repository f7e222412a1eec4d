//===- Lowering.h - from the imported form to the LLVM dialect ------------------------------------------===//
#ifndef VMPACK_LOWERING_LOWERING_H
#define VMPACK_LOWERING_LOWERING_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/Support/LLVM.h"

namespace vmpack::lowering {

/// Where the pipeline stops. `Lowered` is one step before LLVM: dispatches and schedules on memrefs and loops.
enum class Stage { Lowered, Llvm };

/// Lowers `module` (the imported form, see frontend/Frontend.h) in place. Diagnostics go to the context; on failure the
/// module is in no defined state. `verbose` names every pass on standard error as it starts.
mlir::LogicalResult lower(mlir::ModuleOp module, Stage stage, bool verbose = false);

/// The dialects and interfaces that the passes need.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_LOWERING_H
