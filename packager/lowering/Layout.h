//===- Layout.h - making transposes ---------------------------------------------------------------------===//
#ifndef VMPACK_LOWERING_LAYOUT_H
#define VMPACK_LOWERING_LAYOUT_H

#include "mlir/IR/Builders.h"

namespace vmpack::lowering {

/// A linalg.transpose: result dim i is dim permutation[i] of `source`.
mlir::Value createTranspose(mlir::OpBuilder &builder, mlir::Location loc, mlir::Value source,
                            mlir::ArrayRef<int64_t> permutation);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_LAYOUT_H
