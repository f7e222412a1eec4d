//===- Constants.cpp - reading and making constant tensors ----------------------------------------------===//
#include "packager/lowering/Constants.h"
#include "packager/dialect/Vmpk.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/AsmState.h"
#include "mlir/IR/DialectResourceBlobManager.h"
#include "mlir/IR/Matchers.h"

using namespace mlir;

namespace vmpack::lowering {

/// Larger constants are resources.
static constexpr size_t largestInline = 1024;

ElementsAttr constantOf(Value value) {
  Attribute attribute;
  if (!isa<RankedTensorType>(value.getType()) || !matchPattern(value, m_Constant(&attribute)))
    return {};
  return dyn_cast<ElementsAttr>(attribute);
}

template <typename T> std::optional<std::vector<T>> constantElements(Value value) {
  ElementsAttr elements = constantOf(value);
  if (!elements || dialect::byteSize(elements.getShapedType()) != elements.getNumElements() * sizeof(T))
    return std::nullopt;
  std::vector<T> result(elements.getNumElements());
  dialect::writeElements(elements,
                         MutableArrayRef<char>(reinterpret_cast<char *>(result.data()), result.size() * sizeof(T)));
  return result;
}
template std::optional<std::vector<float>> constantElements<float>(Value value);
template std::optional<std::vector<char>> constantElements<char>(Value value);

Value createConstant(OpBuilder &builder, Location loc, RankedTensorType type, ArrayRef<char> bytes) {
  ElementsAttr value;
  if (type.getElementType().isInteger(1)) {
    SmallVector<bool> bits(bytes.begin(), bytes.end());
    value = DenseElementsAttr::get(type, bits);
  } else if (bytes.size() <= largestInline) {
    value = DenseElementsAttr::getFromRawBuffer(type, bytes);
  } else {
    value = DenseResourceElementsAttr::get(type, "constant", HeapAsmResourceBlob::allocateAndCopyWithAlign(bytes, 64));
  }
  return arith::ConstantOp::create(builder, loc, type, cast<TypedAttr>(value));
}

Value createFloatConstant(OpBuilder &builder, Location loc, ArrayRef<int64_t> shape, ArrayRef<float> values) {
  return createConstant(builder, loc, RankedTensorType::get(shape, builder.getF32Type()),
                        ArrayRef<char>(reinterpret_cast<const char *>(values.data()), values.size() * sizeof(float)));
}

} // namespace vmpack::lowering
