//===- Epilogues.h - what a kernel does to its result for free ------------------------------------------===//
#ifndef VMPACK_LOWERING_EPILOGUES_H
#define VMPACK_LOWERING_EPILOGUES_H

#include "mlir/IR/PatternMatch.h"

namespace vmpack::lowering {

/// Element-wise ops that follow a kernel op become its bias, its scaled weights or its clamp.
void addEpiloguePatterns(mlir::RewritePatternSet &patterns);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_EPILOGUES_H
