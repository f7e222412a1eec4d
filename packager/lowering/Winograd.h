//===- Winograd.h - 3x3 convolutions with fewer multiplications -----------------------------------------===//
#ifndef VMPACK_LOWERING_WINOGRAD_H
#define VMPACK_LOWERING_WINOGRAD_H

#include "mlir/IR/PatternMatch.h"

namespace vmpack::lowering {

/// Adds the pattern that replaces vmpk.conv by vmpk.winograd where it pays. Use it after the epilogue patterns are
/// done: what they know of is the convolution.
void addWinogradPatterns(mlir::RewritePatternSet &patterns);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_WINOGRAD_H
