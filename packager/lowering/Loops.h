//===- Loops.h - one op of a dispatch as loops or kernel calls ------------------------------------------===//
#ifndef VMPACK_LOWERING_LOOPS_H
#define VMPACK_LOWERING_LOOPS_H

#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/IR/Builders.h"

namespace vmpack::lowering {

/// The range [begin, end) of one leading dim of an op's destination that a workgroup works on.
struct TileRange {
  mlir::Value begin, end;
};

/// Emits `op` (on memrefs, with values visible at the builder's insertion point) restricted to `tile`: one range for
/// each leading dim of its destination. The op itself is left in place, for the caller to erase.
mlir::LogicalResult emitTiled(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ArrayRef<TileRange> tile);

/// How many leading dims of the destination of `op` may be split between workgroups, and which dim of the op's
/// iteration space (generic ops only) each is. Empty when none may.
struct TileSpace {
  unsigned maximum = 0;             ///< splitting more than this is not possible
  mlir::SmallVector<unsigned> dims; ///< iteration dims of the leading destination dims; empty for kernel ops
};
TileSpace tileSpaceOf(mlir::Operation *op);

/// True for the ops that dispatches are made of.
bool isComputeOp(mlir::Operation *op);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_LOOPS_H
