//===- EntryPoints.h - the functions that the host reaches ----------------------------------------------===//
#ifndef VMPACK_LOWERING_ENTRYPOINTS_H
#define VMPACK_LOWERING_ENTRYPOINTS_H

#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/IR/BuiltinOps.h"

namespace vmpack::lowering {

/// Declares an external function in the module around `anchor`, once.
void declare(mlir::OpBuilder &builder, mlir::Operation *anchor, llvm::StringRef name,
             mlir::LLVM::LLVMFunctionType type);

/// The symbol that a dispatch's ordinal has.
std::string dispatchName(uint32_t ordinal);

/// Calls accessors of vmpk/abi.h where the builder stands.
class Abi {
public:
  Abi(mlir::OpBuilder &builder, mlir::Operation *anchor) : builder(builder), anchor(anchor), loc(anchor->getLoc()) {}

  mlir::Type pointer();
  mlir::Value i32(int64_t value);
  mlir::Value i64(int64_t value);
  /// `result` null: void, and so is the answer.
  mlir::Value call(llvm::StringRef accessor, mlir::Type result, mlir::ValueRange operands);

private:
  mlir::OpBuilder &builder;
  mlir::Operation *anchor;
  mlir::Location loc;
};

/// Gives schedules, dispatches and measures the signatures that the ABI calls, and adds vmpk_module_invoke and
/// vmpk_module_measure, which choose by ordinal.
void makeEntryPoints(mlir::ModuleOp module);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_ENTRYPOINTS_H
