//===- Evaluate.cpp - the payload of a linalg.generic on known values -----------------------------------===//
#include "packager/lowering/Evaluate.h"

#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/Linalg/IR/Linalg.h"
#include "mlir/Dialect/Math/IR/Math.h"

#include "llvm/ADT/APFloat.h"
#include "llvm/ADT/DenseMap.h"

#include <cmath>
#include <cstring>

using namespace mlir;

namespace vmpack::lowering {
namespace {

using Function = Scalar (*)(const Scalar *, const Scalar *, const Scalar *);

Scalar real(double value) { return {value, 0}; }
Scalar integer(int64_t value) { return {0, value}; }

#define UNARY(OP, EXPRESSION)                                                                                          \
  if (isa<OP>(op))                                                                                                     \
    return [](const Scalar *a, const Scalar *, const Scalar *) -> Scalar { return EXPRESSION; };
#define BINARY(OP, EXPRESSION)                                                                                         \
  if (isa<OP>(op))                                                                                                     \
    return [](const Scalar *a, const Scalar *b, const Scalar *) -> Scalar { return EXPRESSION; };

Function floatFunction(Operation *op) {
  BINARY(arith::AddFOp, real(a->real + b->real))
  BINARY(arith::SubFOp, real(a->real - b->real))
  BINARY(arith::MulFOp, real(a->real * b->real))
  BINARY(arith::DivFOp, real(a->real / b->real))
  UNARY(arith::NegFOp, real(-a->real))
  BINARY(arith::MaximumFOp, real(std::isnan(a->real) || std::isnan(b->real) ? NAN : std::max(a->real, b->real)))
  BINARY(arith::MinimumFOp, real(std::isnan(a->real) || std::isnan(b->real) ? NAN : std::min(a->real, b->real)))
  UNARY(math::SqrtOp, real(std::sqrt(a->real)))
  UNARY(math::RsqrtOp, real(1 / std::sqrt(a->real)))
  UNARY(math::AbsFOp, real(std::fabs(a->real)))
  UNARY(math::FloorOp, real(std::floor(a->real)))
  UNARY(math::CeilOp, real(std::ceil(a->real)))
  UNARY(math::ExpOp, real(std::exp(a->real)))
  UNARY(math::LogOp, real(std::log(a->real)))
  UNARY(math::TanhOp, real(std::tanh(a->real)))
  UNARY(math::ErfOp, real(std::erf(a->real)))
  BINARY(math::PowFOp, real(std::pow(a->real, b->real)))
  UNARY(arith::ExtFOp, *a)
  UNARY(arith::TruncFOp, *a)
  UNARY(arith::SIToFPOp, real(double(a->integer)))
  return nullptr;
}

Function integerFunction(Operation *op) {
  BINARY(arith::AddIOp, integer(int64_t(uint64_t(a->integer) + uint64_t(b->integer))))
  BINARY(arith::SubIOp, integer(int64_t(uint64_t(a->integer) - uint64_t(b->integer))))
  BINARY(arith::MulIOp, integer(int64_t(uint64_t(a->integer) * uint64_t(b->integer))))
  UNARY(arith::ExtSIOp, *a)
  UNARY(arith::TruncIOp, *a)
  UNARY(arith::IndexCastOp, *a)
  return nullptr;
}
#undef UNARY
#undef BINARY

} // namespace

Scalar rounded(Scalar value, Type type) {
  if (type.isF32())
    value.real = float(value.real);
  else if (auto small = dyn_cast<FloatType>(type); small && small.getWidth() < 32) {
    APFloat narrowed(value.real);
    bool lost;
    narrowed.convert(small.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    narrowed.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    value.real = narrowed.convertToDouble();
  } else if (auto narrow = dyn_cast<IntegerType>(type); narrow && narrow.getWidth() < 64) {
    value.integer = llvm::SignExtend64(uint64_t(value.integer), narrow.getWidth());
  }
  return value;
}

template <typename T> static T load(const char *memory) {
  T value;
  std::memcpy(&value, memory, sizeof value);
  return value;
}

Scalar readElement(const char *memory, Type type) {
  if (type.isF32())
    return real(load<float>(memory));
  if (type.isF64())
    return real(load<double>(memory));
  if (auto small = dyn_cast<FloatType>(type)) {
    APFloat value(small.getFloatSemantics(), APInt(16, load<uint16_t>(memory)));
    bool lost;
    value.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
    return real(value.convertToDouble());
  }
  switch (llvm::divideCeil(type.isIndex() ? 64 : type.getIntOrFloatBitWidth(), 8)) {
  case 1:
    return rounded(integer(load<int8_t>(memory)), type);
  case 2:
    return integer(load<int16_t>(memory));
  case 4:
    return integer(load<int32_t>(memory));
  default:
    return integer(load<int64_t>(memory));
  }
}

void writeElement(char *memory, Type type, Scalar value) {
  auto store = [&](auto typed) { std::memcpy(memory, &typed, sizeof typed); };
  if (type.isF32())
    return store(float(value.real));
  if (type.isF64())
    return store(value.real);
  if (auto small = dyn_cast<FloatType>(type)) {
    APFloat narrowed(value.real);
    bool lost;
    narrowed.convert(small.getFloatSemantics(), APFloat::rmNearestTiesToEven, &lost);
    return store(uint16_t(narrowed.bitcastToAPInt().getZExtValue()));
  }
  if (type.isInteger(1))
    return store(uint8_t(value.integer & 1));
  switch (llvm::divideCeil(type.isIndex() ? 64 : type.getIntOrFloatBitWidth(), 8)) {
  case 1:
    return store(int8_t(value.integer));
  case 2:
    return store(int16_t(value.integer));
  case 4:
    return store(int32_t(value.integer));
  default:
    return store(value.integer);
  }
}

std::optional<Payload> Payload::compile(Block &block) {
  Payload payload;
  llvm::DenseMap<Value, unsigned> slots;
  auto slotOf = [&](Value value) -> std::optional<unsigned> {
    if (auto found = slots.find(value); found != slots.end())
      return found->second;
    auto constant = value.getDefiningOp<arith::ConstantOp>();
    if (!constant)
      return std::nullopt;
    Scalar known;
    if (auto number = dyn_cast<FloatAttr>(constant.getValue())) {
      APFloat wide = number.getValue();
      bool lost;
      wide.convert(APFloat::IEEEdouble(), APFloat::rmNearestTiesToEven, &lost);
      known = real(wide.convertToDouble());
    } else if (auto whole = dyn_cast<IntegerAttr>(constant.getValue())) {
      known = integer(whole.getValue().getSExtValue());
    } else {
      return std::nullopt;
    }
    slots[value] = payload.values.size();
    payload.values.push_back(known);
    return payload.values.size() - 1;
  };
  payload.values.resize(block.getNumArguments());
  for (BlockArgument argument : block.getArguments())
    slots[argument] = argument.getArgNumber();
  for (Operation &op : block.without_terminator()) {
    if (isa<arith::ConstantOp>(op))
      continue;
    Function function = floatFunction(&op);
    if (!function)
      function = integerFunction(&op);
    if (!function || op.getNumResults() != 1 || op.getNumOperands() > 3)
      return std::nullopt;
    Step step{function, {0, 0, 0}, 0, op.getResult(0).getType()};
    for (auto [index, operand] : llvm::enumerate(op.getOperands())) {
      auto slot = slotOf(operand);
      if (!slot)
        return std::nullopt;
      step.operands[index] = *slot;
    }
    slots[op.getResult(0)] = step.result = payload.values.size();
    payload.values.emplace_back();
    payload.steps.push_back(step);
  }
  for (Value value : block.getTerminator()->getOperands()) {
    auto slot = slotOf(value);
    if (!slot)
      return std::nullopt;
    payload.yielded.push_back(*slot);
  }
  return payload;
}

void Payload::run(ArrayRef<Scalar> arguments, MutableArrayRef<Scalar> results) {
  std::copy(arguments.begin(), arguments.end(), values.begin());
  for (const Step &step : steps)
    values[step.result] = rounded(
        step.function(&values[step.operands[0]], &values[step.operands[1]], &values[step.operands[2]]), step.type);
  for (auto [index, slot] : llvm::enumerate(yielded))
    results[index] = values[slot];
}

} // namespace vmpack::lowering
