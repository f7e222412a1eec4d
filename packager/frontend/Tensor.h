//===- Tensor.h - what the importer knows of a value ----------------------------------------------------===//
//
//            ┌ elem, shape        always: dims are affine expressions of the model's symbolic dims, so that
//   Tensor ──┤                    equal sizes are equal pointers
//            ├ constant           the bytes, when they are known
//            ├ elements           one expression an element, for small integer tensors (shape arithmetic)
//            └ value              the IR, made only when something asks for it
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_FRONTEND_TENSOR_H
#define VMPACK_FRONTEND_TENSOR_H

#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Value.h"
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/SmallVector.h"
#include "llvm/Support/Error.h"

#include <memory>
#include <optional>
#include <string>

/// Unwraps an Expected into a declaration, or returns its error from the enclosing function.
#define VMPACK_CONCAT_(a, b) a##b
#define VMPACK_CONCAT(a, b) VMPACK_CONCAT_(a, b)
#define VMPACK_TRY_(temporary, declaration, expression)                                                                \
  auto temporary = (expression);                                                                                       \
  if (!temporary)                                                                                                      \
    return temporary.takeError();                                                                                      \
  declaration = std::move(*temporary)
#define VMPACK_TRY(declaration, expression) VMPACK_TRY_(VMPACK_CONCAT(expected_, __LINE__), declaration, expression)
/// Returns the error from the enclosing function when there is one.
#define VMPACK_CHECK(expression)                                                                                       \
  if (llvm::Error error = (expression))                                                                                \
  return error

namespace vmpack::frontend {

/// Element types: the numbers are ONNX's. Index is the IR's index type, for computed positions only.
enum class Elem : uint8_t {
  None = 0,
  F32 = 1,
  U8 = 2,
  I8 = 3,
  U16 = 4,
  I16 = 5,
  I32 = 6,
  I64 = 7,
  String = 8,
  Bool = 9,
  F16 = 10,
  F64 = 11,
  U32 = 12,
  U64 = 13,
  BF16 = 16,
  Index = 255
};

/// The element type with ONNX's number, or None when vmpack has no such type.
Elem elemOf(int onnxType);
bool isFloat(Elem elem);
bool isUnsigned(Elem elem);
/// Integers of any sign; bool is none.
bool isInteger(Elem elem);
/// Bytes of one element in a constant.
unsigned widthOf(Elem elem);
/// As ONNX spells it: "float", "int64".
llvm::StringRef nameOf(Elem elem);
mlir::Type mlirType(mlir::MLIRContext *context, Elem elem);

/// One number of any element type: `real` counts when the element is a float, `integer` otherwise (u64 as its bits).
struct Number {
  double real = 0;
  int64_t integer = 0;
};

/// A number as an element of `elem` holds it: rounded, wrapped, truncated.
Number rounded(Elem elem, Number number);
/// Converts between element types as ONNX's Cast does.
Number converted(Elem from, Elem to, Number number);

using Dim = mlir::AffineExpr;
using Dims = llvm::SmallVector<Dim, 4>;
using Ints = llvm::SmallVector<int64_t, 4>;

std::optional<int64_t> constantDim(Dim dim);
bool isDim(Dim dim, int64_t value);
/// All the dims as integers, or nothing when one is symbolic.
std::optional<Ints> staticDims(llvm::ArrayRef<Dim> dims);
/// The product; 1 for none.
Dim productOf(mlir::MLIRContext *context, llvm::ArrayRef<Dim> dims);
/// The quotient of two products, when it is exact for all values of the symbols: equal factors cancel.
std::optional<Dim> quotientOf(mlir::MLIRContext *context, llvm::ArrayRef<Dim> numerator,
                              llvm::ArrayRef<Dim> denominator);
/// For messages: "[N, 3, 4*H]" with `symbols` as names.
std::string describe(llvm::ArrayRef<Dim> dims, llvm::ArrayRef<std::string> symbols);

/// Constant data: row-major, little-endian, bool as one byte. The owner keeps the bytes alive.
struct Constant {
  std::shared_ptr<const void> owner;
  llvm::ArrayRef<char> bytes;

  static std::shared_ptr<Constant> own(std::string bytes);
};

struct Tensor {
  Elem elem = Elem::None;
  Dims shape;
  std::shared_ptr<Constant> constant;
  std::shared_ptr<llvm::SmallVector<Dim>> elements;
  mlir::Value value;

  explicit operator bool() const { return elem != Elem::None; }
  int64_t rank() const { return static_cast<int64_t>(shape.size()); }
  /// Whether every element is known as a number or an expression.
  bool isKnown() const { return constant || elements; }
  /// How many elements a constant has.
  int64_t constantCount() const { return static_cast<int64_t>(constant->bytes.size() / widthOf(elem)); }
};

/// Element `index` of a constant.
Number readElement(const Tensor &tensor, int64_t index);
Number readElement(Elem elem, const char *bytes);
void appendElement(Elem elem, Number number, std::string &bytes);
/// The number that all elements of a constant equal (bit for bit), if there is one.
std::optional<Number> splatOf(const Tensor &tensor);

} // namespace vmpack::frontend

#endif // VMPACK_FRONTEND_TENSOR_H
