//===- Tensors.h - tensors in files and from a seed -----------------------------------------------------===//
#ifndef VMPACK_TOOL_TENSORS_H
#define VMPACK_TOOL_TENSORS_H

#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Error.h"

#include <cstdint>
#include <string>
#include <vector>

namespace vmpack::tool {

/// A dense row-major tensor with its bytes. `dtype` is a VMPK_DTYPE_* value.
struct Tensor {
  std::string name; ///< "" where the file has none
  uint32_t dtype = 0;
  std::vector<int64_t> dims;
  std::vector<char> bytes;
};

/// Bytes of one element, 0 for a value that is no dtype.
uint64_t dtypeSize(uint32_t dtype);
/// "f32", "i64", "bool" …; "invalid" for a value that is no dtype.
llvm::StringRef dtypeName(uint32_t dtype);
/// "f32[1, 3, 224]".
std::string describe(uint32_t dtype, llvm::ArrayRef<int64_t> dims);
/// Bytes of a dense tensor; an error when a dim is negative or the product does not fit 63 bits.
llvm::Expected<uint64_t> byteSize(uint32_t dtype, llvm::ArrayRef<int64_t> dims);

/// Reads a file by its content: .npy (versions 1 to 3, C order, little-endian, any numeric type), else an ONNX
/// TensorProto. Errors name the file. Hostile files are errors.
llvm::Expected<Tensor> readTensor(llvm::StringRef path);

/// Either half of readTensor, on bytes.
llvm::Expected<Tensor> decodeNpy(llvm::StringRef bytes);
llvm::Expected<Tensor> decodeTensorProto(llvm::StringRef bytes);

/// The bytes of a .npy file, version 1, that numpy would write for `tensor` (bf16, which numpy lacks, as '|V2').
std::vector<char> encodeNpy(const Tensor &tensor);

/// Fills an input that the user left out. Element i of input `ordinal` is a hash of one 32-bit number:
///   x = seed * 0x9e3779b9 + ordinal * 0x85ebca6b + i
///   x = (x ^ x >> 16) * 0x7feb352d;  x = (x ^ x >> 15) * 0x846ca68b;  x ^= x >> 16
/// Floating point: (x >> 8) / 2^23 - 1, in [-1, 1). Integers: x mod 8. Bool: x mod 2.
llvm::Expected<Tensor> seededTensor(llvm::StringRef name, uint32_t dtype, llvm::ArrayRef<int64_t> dims, uint64_t seed,
                                    uint64_t ordinal);

} // namespace vmpack::tool

#endif // VMPACK_TOOL_TENSORS_H
