//===- Constants.h - reading and making constant tensors ------------------------------------------------===//
#ifndef VMPACK_LOWERING_CONSTANTS_H
#define VMPACK_LOWERING_CONSTANTS_H

#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinAttributes.h"

#include <optional>
#include <vector>

namespace vmpack::lowering {

/// The elements attribute of a constant tensor, or null.
mlir::ElementsAttr constantOf(mlir::Value value);

/// The elements of a constant tensor of T (float, int64_t …) as they lie in memory; nullopt when `value` is no constant
/// or its element type is not T's size.
template <typename T> std::optional<std::vector<T>> constantElements(mlir::Value value);

/// A constant tensor with these bytes: a resource when large, so that nobody hashes or copies it on the way.
mlir::Value createConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::RankedTensorType type,
                           mlir::ArrayRef<char> bytes);

/// The same for f32 values.
mlir::Value createFloatConstant(mlir::OpBuilder &builder, mlir::Location loc, mlir::ArrayRef<int64_t> shape,
                                mlir::ArrayRef<float> values);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_CONSTANTS_H
