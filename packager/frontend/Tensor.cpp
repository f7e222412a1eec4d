#include "packager/frontend/Tensor.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/raw_ostream.h"

#include <cmath>
#include <cstring>

using namespace vmpack::frontend;

Elem vmpack::frontend::elemOf(int onnxType) {
  switch (onnxType) {
  case 1:
  case 2:
  case 3:
  case 4:
  case 5:
  case 6:
  case 7:
  case 8:
  case 9:
  case 10:
  case 11:
  case 12:
  case 13:
  case 16:
    return static_cast<Elem>(onnxType);
  default:
    return Elem::None;
  }
}

bool vmpack::frontend::isFloat(Elem elem) {
  return elem == Elem::F32 || elem == Elem::F64 || elem == Elem::F16 || elem == Elem::BF16;
}

bool vmpack::frontend::isUnsigned(Elem elem) {
  return elem == Elem::U8 || elem == Elem::U16 || elem == Elem::U32 || elem == Elem::U64;
}

bool vmpack::frontend::isInteger(Elem elem) {
  return isUnsigned(elem) || elem == Elem::I8 || elem == Elem::I16 || elem == Elem::I32 || elem == Elem::I64 ||
         elem == Elem::Index;
}

unsigned vmpack::frontend::widthOf(Elem elem) {
  switch (elem) {
  case Elem::F64:
  case Elem::I64:
  case Elem::U64:
  case Elem::Index:
    return 8;
  case Elem::F32:
  case Elem::I32:
  case Elem::U32:
    return 4;
  case Elem::F16:
  case Elem::BF16:
  case Elem::I16:
  case Elem::U16:
    return 2;
  default:
    return 1;
  }
}

llvm::StringRef vmpack::frontend::nameOf(Elem elem) {
  switch (elem) {
  case Elem::None:
    return "unknown";
  case Elem::F32:
    return "float";
  case Elem::U8:
    return "uint8";
  case Elem::I8:
    return "int8";
  case Elem::U16:
    return "uint16";
  case Elem::I16:
    return "int16";
  case Elem::I32:
    return "int32";
  case Elem::I64:
    return "int64";
  case Elem::String:
    return "string";
  case Elem::Bool:
    return "bool";
  case Elem::F16:
    return "float16";
  case Elem::F64:
    return "double";
  case Elem::U32:
    return "uint32";
  case Elem::U64:
    return "uint64";
  case Elem::BF16:
    return "bfloat16";
  case Elem::Index:
    return "index";
  }
  return "unknown";
}

mlir::Type vmpack::frontend::mlirType(mlir::MLIRContext *context, Elem elem) {
  switch (elem) {
  case Elem::F32:
    return mlir::Float32Type::get(context);
  case Elem::F64:
    return mlir::Float64Type::get(context);
  case Elem::F16:
    return mlir::Float16Type::get(context);
  case Elem::BF16:
    return mlir::BFloat16Type::get(context);
  case Elem::Bool:
    return mlir::IntegerType::get(context, 1);
  case Elem::Index:
    return mlir::IndexType::get(context);
  default:
    return mlir::IntegerType::get(context, 8 * widthOf(elem));
  }
}

static double throughSemantics(double value, const llvm::fltSemantics &semantics) {
  llvm::APFloat number(value);
  bool inexact;
  number.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
  number.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
  return number.convertToDouble();
}

Number vmpack::frontend::rounded(Elem elem, Number n) {
  switch (elem) {
  case Elem::F32:
    n.real = static_cast<float>(n.real);
    break;
  case Elem::F16:
    n.real = throughSemantics(n.real, llvm::APFloat::IEEEhalf());
    break;
  case Elem::BF16:
    n.real = throughSemantics(n.real, llvm::APFloat::BFloat());
    break;
  case Elem::Bool:
    n.integer = n.integer != 0;
    break;
  case Elem::I8:
    n.integer = static_cast<int8_t>(n.integer);
    break;
  case Elem::U8:
    n.integer = static_cast<uint8_t>(n.integer);
    break;
  case Elem::I16:
    n.integer = static_cast<int16_t>(n.integer);
    break;
  case Elem::U16:
    n.integer = static_cast<uint16_t>(n.integer);
    break;
  case Elem::I32:
    n.integer = static_cast<int32_t>(n.integer);
    break;
  case Elem::U32:
    n.integer = static_cast<uint32_t>(n.integer);
    break;
  default:
    break;
  }
  return n;
}

/// Truncates towards zero; what does not fit saturates, NaN is 0, so that no conversion is undefined.
static int64_t truncated(double value, bool toUnsigned) {
  if (std::isnan(value))
    return 0;
  if (toUnsigned && value >= 9223372036854775808.0)
    return value >= 18446744073709551616.0 ? -1 : static_cast<int64_t>(static_cast<uint64_t>(value));
  if (value >= 9223372036854775808.0)
    return INT64_MAX;
  if (value < -9223372036854775808.0)
    return INT64_MIN;
  return static_cast<int64_t>(value);
}

Number vmpack::frontend::converted(Elem from, Elem to, Number n) {
  if (isFloat(from) && to == Elem::Bool)
    n.integer = n.real != 0;
  else if (isFloat(from) && !isFloat(to))
    n.integer = truncated(n.real, to == Elem::U64);
  else if (!isFloat(from) && isFloat(to))
    n.real = from == Elem::U64 ? static_cast<double>(static_cast<uint64_t>(n.integer)) : static_cast<double>(n.integer);
  return rounded(to, n);
}

std::optional<int64_t> vmpack::frontend::constantDim(Dim dim) {
  if (auto constant = llvm::dyn_cast<mlir::AffineConstantExpr>(dim))
    return constant.getValue();
  return std::nullopt;
}

bool vmpack::frontend::isDim(Dim dim, int64_t value) { return constantDim(dim) == value; }

std::optional<Ints> vmpack::frontend::staticDims(llvm::ArrayRef<Dim> dims) {
  Ints result;
  for (Dim dim : dims) {
    std::optional<int64_t> size = constantDim(dim);
    if (!size)
      return std::nullopt;
    result.push_back(*size);
  }
  return result;
}

namespace {
/// A product as a constant and factors that are no products.
struct Factors {
  int64_t constant = 1;
  llvm::SmallVector<Dim> others;

  void add(Dim dim) {
    if (std::optional<int64_t> size = constantDim(dim)) {
      if (__builtin_mul_overflow(constant, *size, &constant))
        constant = INT64_MAX;
    } else if (dim.getKind() == mlir::AffineExprKind::Mul) {
      auto product = llvm::cast<mlir::AffineBinaryOpExpr>(dim);
      add(product.getLHS());
      add(product.getRHS());
    } else {
      others.push_back(dim);
    }
  }
};
} // namespace

Dim vmpack::frontend::productOf(mlir::MLIRContext *context, llvm::ArrayRef<Dim> dims) {
  Factors factors;
  for (Dim dim : dims)
    factors.add(dim);
  // One order for all, so that equal products are equal expressions.
  llvm::stable_sort(factors.others, [](Dim a, Dim b) {
    auto position = [](Dim dim) {
      auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(dim);
      return symbol ? symbol.getPosition() : ~0u;
    };
    return position(a) < position(b);
  });
  if (factors.constant == 0 || factors.others.empty())
    return mlir::getAffineConstantExpr(factors.constant, context);
  Dim result = factors.others.front();
  for (Dim factor : llvm::drop_begin(factors.others))
    result = result * factor;
  return factors.constant == 1 ? result : result * factors.constant;
}

std::optional<Dim> vmpack::frontend::quotientOf(mlir::MLIRContext *context, llvm::ArrayRef<Dim> numerator,
                                                llvm::ArrayRef<Dim> denominator) {
  Factors top, bottom;
  for (Dim dim : numerator)
    top.add(dim);
  for (Dim dim : denominator)
    bottom.add(dim);
  for (Dim factor : bottom.others) {
    auto *same = llvm::find(top.others, factor);
    if (same == top.others.end())
      return std::nullopt;
    top.others.erase(same);
  }
  if (bottom.constant == 0)
    return std::nullopt;
  if (top.constant % bottom.constant == 0) {
    top.others.push_back(mlir::getAffineConstantExpr(top.constant / bottom.constant, context));
    return productOf(context, top.others);
  }
  // A constant that does not divide the others' constant may still divide their values: (2*n + 2) / 4.
  if (top.others.empty())
    return std::nullopt;
  top.others.push_back(mlir::getAffineConstantExpr(top.constant, context));
  return productOf(context, top.others).floorDiv(bottom.constant);
}

static void print(Dim dim, llvm::ArrayRef<std::string> symbols, llvm::raw_ostream &stream) {
  if (auto symbol = llvm::dyn_cast<mlir::AffineSymbolExpr>(dim); symbol && symbol.getPosition() < symbols.size()) {
    stream << symbols[symbol.getPosition()];
    return;
  }
  auto binary = llvm::dyn_cast<mlir::AffineBinaryOpExpr>(dim);
  if (!binary) {
    dim.print(stream);
    return;
  }
  auto operand = [&](Dim side) {
    bool nested = llvm::isa<mlir::AffineBinaryOpExpr>(side);
    stream << (nested ? "(" : "");
    print(side, symbols, stream);
    stream << (nested ? ")" : "");
  };
  operand(binary.getLHS());
  switch (dim.getKind()) {
  case mlir::AffineExprKind::Add:
    stream << " + ";
    break;
  case mlir::AffineExprKind::Mul:
    stream << "*";
    break;
  case mlir::AffineExprKind::Mod:
    stream << " mod ";
    break;
  case mlir::AffineExprKind::CeilDiv:
    stream << " ceildiv ";
    break;
  default:
    stream << " / ";
    break;
  }
  operand(binary.getRHS());
}

std::string vmpack::frontend::describe(llvm::ArrayRef<Dim> dims, llvm::ArrayRef<std::string> symbols) {
  std::string text;
  llvm::raw_string_ostream stream(text);
  stream << '[';
  llvm::interleaveComma(dims, stream, [&](Dim dim) { print(dim, symbols, stream); });
  stream << ']';
  return text;
}

std::shared_ptr<Constant> Constant::own(std::string bytes) {
  auto storage = std::make_shared<std::string>(std::move(bytes));
  auto constant = std::make_shared<Constant>();
  constant->bytes = llvm::ArrayRef<char>(storage->data(), storage->size());
  constant->owner = std::move(storage);
  return constant;
}

template <typename T> static T load(const char *bytes) {
  T value;
  std::memcpy(&value, bytes, sizeof value);
  return value;
}

Number vmpack::frontend::readElement(Elem elem, const char *at) {
  Number number;
  auto fromBits = [](const llvm::fltSemantics &semantics, uint16_t bits) {
    llvm::APFloat value(semantics, llvm::APInt(16, bits));
    bool inexact;
    value.convert(llvm::APFloat::IEEEdouble(), llvm::APFloat::rmNearestTiesToEven, &inexact);
    return value.convertToDouble();
  };
  switch (elem) {
  case Elem::F32:
    number.real = load<float>(at);
    break;
  case Elem::F64:
    number.real = load<double>(at);
    break;
  case Elem::F16:
    number.real = fromBits(llvm::APFloat::IEEEhalf(), load<uint16_t>(at));
    break;
  case Elem::BF16:
    number.real = fromBits(llvm::APFloat::BFloat(), load<uint16_t>(at));
    break;
  case Elem::Bool:
    number.integer = *at != 0;
    break;
  case Elem::U8:
    number.integer = load<uint8_t>(at);
    break;
  case Elem::I8:
    number.integer = load<int8_t>(at);
    break;
  case Elem::U16:
    number.integer = load<uint16_t>(at);
    break;
  case Elem::I16:
    number.integer = load<int16_t>(at);
    break;
  case Elem::U32:
    number.integer = load<uint32_t>(at);
    break;
  case Elem::I32:
    number.integer = load<int32_t>(at);
    break;
  default:
    number.integer = load<int64_t>(at);
    break;
  }
  return number;
}

Number vmpack::frontend::readElement(const Tensor &tensor, int64_t index) {
  return readElement(tensor.elem, tensor.constant->bytes.data() + index * widthOf(tensor.elem));
}

void vmpack::frontend::appendElement(Elem elem, Number number, std::string &bytes) {
  auto append = [&](const auto &value) { bytes.append(reinterpret_cast<const char *>(&value), sizeof value); };
  auto half = [&](const llvm::fltSemantics &semantics) {
    llvm::APFloat value(number.real);
    bool inexact;
    value.convert(semantics, llvm::APFloat::rmNearestTiesToEven, &inexact);
    append(static_cast<uint16_t>(value.bitcastToAPInt().getZExtValue()));
  };
  switch (elem) {
  case Elem::F32:
    append(static_cast<float>(number.real));
    break;
  case Elem::F64:
    append(number.real);
    break;
  case Elem::F16:
    half(llvm::APFloat::IEEEhalf());
    break;
  case Elem::BF16:
    half(llvm::APFloat::BFloat());
    break;
  case Elem::Bool:
    append(static_cast<uint8_t>(number.integer != 0));
    break;
  default:
    bytes.append(reinterpret_cast<const char *>(&number.integer), widthOf(elem));
    break;
  }
}

std::optional<Number> vmpack::frontend::splatOf(const Tensor &tensor) {
  if (!tensor.constant || tensor.constant->bytes.empty())
    return std::nullopt;
  llvm::ArrayRef<char> bytes = tensor.constant->bytes;
  unsigned width = widthOf(tensor.elem);
  // A buffer whose shift by one element equals itself repeats its first element.
  if (std::memcmp(bytes.data(), bytes.data() + width, bytes.size() - width) != 0)
    return std::nullopt;
  return readElement(tensor, 0);
}
