//===- Outline.h - a group of ops moves into a dispatch function ----------------------------------------===//
#ifndef VMPACK_LOWERING_OUTLINE_H
#define VMPACK_LOWERING_OUTLINE_H

#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "llvm/ADT/StringMap.h"

namespace vmpack::lowering {

/// The memref that owns the memory that `memref` is a (chain of) views of.
mlir::Value rootOf(mlir::Value memref);
bool isView(mlir::Operation *op);

/// Makes dispatch functions, numbers them, and keeps their descriptions.
class Outliner {
public:
  explicit Outliner(mlir::ModuleOp module) : module(module) {}

  /// Moves `ops` (of one block, in order) into a new function and dispatches it where the last of them stood. The
  /// grid runs over the first `split` dims of their destinations, `chunk` indices of the last one for each workgroup.
  mlir::LogicalResult outline(mlir::ArrayRef<mlir::Operation *> ops, unsigned split, int64_t chunk);

  /// Attaches the descriptions to the module.
  void finish();

private:
  std::string nameFor(mlir::ArrayRef<mlir::Operation *> ops);

  mlir::ModuleOp module;
  mlir::SmallVector<mlir::Attribute> descriptions;
};

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_OUTLINE_H
