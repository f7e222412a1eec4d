//===- Frontend.h - bytes to ModuleOp -------------------------------------------------------------------===//
//
//   model.onnx ──► importOnnx ─┐
//                              ├──► ModuleOp in the "imported" form ──► packager/lowering
//   model.mlir, .mlirbc ──► importMlir ─┘
//
// The imported form, which is all that the lowering accepts:
//  - public func.funcs on ranked tensors, each an entry point; linalg, tensor, arith, math, scf, affine, complex-free;
//    MLIR input may also hold tosa, which the lowering expands first.
//  - argument attributes `vmpk.name` (string) and `vmpk.dims` (array: integer for a static dim, string for a symbolic
//    dim's name), result attributes likewise. Absent ones are made up: "input_0", "output_0", "d0"…
//    Equal names mean equal sizes. A symbolic result dim that is no argument's symbol is "" (computed).
//  - function attribute `vmpk.bounds`: dictionary symbol → [minimum, maximum], when declared.
//  - bool tensors are i1; unsigned integers are signless, with `vmpk.unsigned` (unit) on arguments and results.
//  - sizes of dynamic dims come from tensor.dim of arguments only, combined by arith / affine.apply on index.
//  - large constants (over 1 KiB) are dense_resource, small ones dense.
//  - convolutions, pools, matmuls are linalg named ops in NHWC; ONNX's NCHW becomes linalg.transpose, op,
//    linalg.transpose: the lowering cancels and sinks them. Convolution padding is a tensor.pad by zero before the op.
//  - every op made for a source node has a NameLoc of the node's name (or OPTYPE_index when it has none).
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_FRONTEND_FRONTEND_H
#define VMPACK_FRONTEND_FRONTEND_H

#include "mlir/IR/BuiltinOps.h"
#include "mlir/IR/MLIRContext.h"
#include "mlir/IR/OwningOpRef.h"
#include "llvm/ADT/StringMap.h"
#include "llvm/Support/Error.h"
#include "llvm/Support/MemoryBufferRef.h"

#include <optional>

namespace vmpack::frontend {

/// `--dim NAME=SIZE` or `--dim NAME=MIN..MAX`: minimum == maximum fixes the dim.
struct DimBound {
  int64_t minimum, maximum;
};

struct ImportOptions {
  llvm::StringMap<DimBound> dims;
  /// Inputs that become constants: name → serialized onnx.TensorProto of the input's type and shape. What a model
  /// computes from them (a target shape, axes) is then known when it is compiled. ONNX only.
  llvm::StringMap<std::string> constants;
};

/// Imports a model: by content, not by the file's suffix, ONNX protobuf or MLIR (text or bytecode).
/// `path` is for messages and for external data beside the model. The module is verified. Errors list every
/// unsupported node (name, op, domain, opset, dtypes); a malformed input is one error that says where.
llvm::Expected<mlir::OwningOpRef<mlir::ModuleOp>> importModel(mlir::MLIRContext &context, llvm::StringRef path,
                                                              const ImportOptions &options);

/// The dialects that importModel creates.
void registerDialects(mlir::DialectRegistry &registry);

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_FRONTEND_H
