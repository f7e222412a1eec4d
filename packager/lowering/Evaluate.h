//===- Evaluate.h - the payload of a linalg.generic on known values -------------------------------------===//
#ifndef VMPACK_LOWERING_EVALUATE_H
#define VMPACK_LOWERING_EVALUATE_H

#include "mlir/IR/Block.h"

#include <optional>
#include <vector>

namespace vmpack::lowering {

/// A scalar of any element type: floats in `real` (exact, f64 holds them all), integers in `integer` (sign-extended).
struct Scalar {
  double real = 0;
  int64_t integer = 0;
};

/// A straight-line payload, compiled to steps that run fast for each element.
class Payload {
public:
  /// nullopt when the block holds an op that is not known here.
  static std::optional<Payload> compile(mlir::Block &block);

  /// Runs the payload: one scalar for each block argument, one result for each yielded value.
  void run(mlir::ArrayRef<Scalar> arguments, mlir::MutableArrayRef<Scalar> results);

private:
  struct Step {
    Scalar (*function)(const Scalar *a, const Scalar *b, const Scalar *c);
    unsigned operands[3]; ///< positions in `values`
    unsigned result;
    mlir::Type type; ///< of the result, which is rounded to it
  };
  std::vector<Step> steps;
  std::vector<unsigned> yielded;
  std::vector<Scalar> values;
};

/// `value` as an element of `type` holds it: rounded or wrapped.
Scalar rounded(Scalar value, mlir::Type type);
/// Reads and writes an element in memory.
Scalar readElement(const char *memory, mlir::Type type);
void writeElement(char *memory, mlir::Type type, Scalar value);

} // namespace vmpack::lowering

#endif // VMPACK_LOWERING_EVALUATE_H
