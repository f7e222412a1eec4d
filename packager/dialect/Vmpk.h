//===- Vmpk.h - the vmpk dialect ------------------------------------------------------------------------===//
#ifndef VMPACK_DIALECT_VMPK_H
#define VMPACK_DIALECT_VMPK_H

#include "mlir/Bytecode/BytecodeOpInterface.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Dialect.h"
#include "mlir/IR/OpDefinition.h"
#include "mlir/IR/OpImplementation.h"
#include "mlir/IR/SymbolTable.h"
#include "mlir/Interfaces/DestinationStyleOpInterface.h"
#include "mlir/Interfaces/SideEffectInterfaces.h"

#include "packager/dialect/VmpkDialect.h.inc"

#define GET_OP_CLASSES
#include "packager/dialect/VmpkOps.h.inc"

namespace vmpack::dialect {

/// Columns of a packed panel; the kernels' VMPK_PANEL.
inline constexpr int64_t panelWidth = 16;

/// The number of bytes that elements take in memory: bool as one byte each.
uint64_t byteSize(mlir::ShapedType type);

/// Writes the elements of a constant (dense, splat or resource) as they lie in memory to `out`, byteSize() long.
void writeElements(mlir::ElementsAttr value, mlir::MutableArrayRef<char> out);

/// Lets one-shot bufferization turn kernel ops from tensors to memrefs.
void registerBufferization(mlir::DialectRegistry &registry);

} // namespace vmpack::dialect

#endif // VMPACK_DIALECT_VMPK_H
