//===- KernelCalls.h - kernel ops of a dispatch as calls of the kernel library --------------------------===//
#ifndef VMPACK_LOWERING_KERNELCALLS_H
#define VMPACK_LOWERING_KERNELCALLS_H

#include "packager/lowering/Loops.h"

namespace vmpack::lowering {

/// True for vmpk.gemm, pack, conv, winograd, depthwise.
bool isKernelOp(mlir::Operation *op);

/// How many leading dims of a kernel op's destination may be split between workgroups.
unsigned kernelTileDims(mlir::Operation *op);

/// Multiply-adds (times two) of a kernel op; 0 when its sizes are dynamic.
uint64_t kernelFlops(mlir::Operation *op);

/// Emits the calls for one tile, see emitTiled.
mlir::LogicalResult emitKernelCall(mlir::OpBuilder &builder, mlir::Operation *op, mlir::ArrayRef<TileRange> tile);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_KERNELCALLS_H
