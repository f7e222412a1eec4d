//===- Passes.h - the passes of the pipeline, in their order --------------------------------------------===//
//
//   imported form (tensors)
//     │ boundary        public functions take buffers for inputs, outputs and sizes
//     │ fold-constants  subgraphs of constants become constants
//     │ layout          transposes cancel, or sink towards the outputs
//     │ kernels         convolutions and matmuls become vmpk kernel ops with packed weights
//     │ (upstream)      element-wise fusion, one-shot bufferization
//     │ dispatches      groups of ops become dispatch functions, the rest is the schedule
//     │ arena           every allocation gets its place in one arena, constants theirs in the weights
//     │ to-llvm         everything becomes the LLVM dialect
//     ▼
//   LLVM dialect + module attributes (see dialect/Metadata.h)
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_LOWERING_PASSES_H
#define VMPACK_LOWERING_PASSES_H

#include "mlir/Pass/Pass.h"

#include <memory>

namespace vmpack::lowering {

std::unique_ptr<mlir::Pass> createBoundaryPass();
std::unique_ptr<mlir::Pass> createFoldConstantsPass();
std::unique_ptr<mlir::Pass> createLayoutPass();
std::unique_ptr<mlir::Pass> createKernelsPass(bool winograd);
std::unique_ptr<mlir::Pass> createFuseElementwisePass();
std::unique_ptr<mlir::Pass> createDestinationsPass();
std::unique_ptr<mlir::Pass> createDispatchesPass();
std::unique_ptr<mlir::Pass> createArenaPass();
std::unique_ptr<mlir::Pass> createToLlvmPass();

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_PASSES_H
