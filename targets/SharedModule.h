//===- SharedModule.h - what the translation hands to every last mile ----------------------------------===//
//
//   packager ──► SharedModule { bitcode, table, weights, signature } ──► static | shared | wasm | jit | object
//
// The same bytes whatever targets are asked for. MLIR ends before this header; only LLVM is seen after it.
//
//===----------------------------------------------------------------------------------------------------===//
#ifndef VMPACK_TARGETS_SHAREDMODULE_H
#define VMPACK_TARGETS_SHAREDMODULE_H

#include <array>
#include <cstdint>
#include <new>
#include <string>
#include <vector>

namespace vmpack::targets {

/// A symbolic dim of a function, with its inclusive bounds.
struct Dim {
  std::string name;
  int64_t minimum = 0;
  int64_t maximum = INT64_MAX;
};

/// A public tensor. `dims` holds dim entries as vmpk/abi.h defines them: a size, -(1 + k) for the k-th symbolic dim of
/// the function, or VMPK_DIM_COMPUTED. `dtype` is a VMPK_DTYPE_* value.
struct Tensor {
  std::string name;
  uint32_t dtype = 0;
  std::vector<int64_t> dims;
};

/// A public function; its ordinal is its position in SharedModule::functions. `arenaSize` is UINT64_MAX when it depends
/// on the symbolic dims.
struct Function {
  std::string name;
  std::vector<Dim> dims;
  std::vector<Tensor> inputs, outputs;
  uint64_t arenaSize = 0;
};

/// A dispatch; its ordinal is its position in SharedModule::dispatches.
struct Dispatch {
  std::string name, location;
  uint64_t flops = 0, bytes = 0;
};

/// Memory at the alignment that modules assume of their weights (VMPK_ALIGNMENT).
template <typename T> struct WeightsAllocator {
  using value_type = T;
  static constexpr std::align_val_t alignment{64};
  WeightsAllocator() = default;
  template <typename U> WeightsAllocator(const WeightsAllocator<U> &) {}
  T *allocate(size_t count) { return static_cast<T *>(::operator new(count * sizeof(T), alignment)); }
  void deallocate(T *memory, size_t) { ::operator delete(memory, alignment); }
  bool operator==(const WeightsAllocator &) const { return true; }
};

/// The shared module.
///
/// `bitcode` is LLVM bitcode with no triple, data layout or CPU feature. It defines `vmpk_query` and declares what the
/// last mile must add: `const uint8_t *vmpk_module_table(void)`, `const uint8_t *vmpk_module_weights(void)` (NULL when
/// the weights are not embedded), and the kernels of runtime/kernels/kernels.h that it calls.
/// `table` is the module table of vmpk/abi.h, `digest` and `weightsDigest` are SHA-256 of `bitcode` and `weights`.
struct SharedModule {
  std::string name; ///< a valid C identifier
  std::vector<char> bitcode;
  std::array<uint8_t, 32> digest{}, weightsDigest{};
  std::vector<uint8_t> table;
  std::vector<uint8_t, WeightsAllocator<uint8_t>> weights; ///< aligned, and so is every tensor inside
  std::vector<Function> functions;
  std::vector<Dispatch> dispatches;
};

} // namespace vmpack::targets

#endif // VMPACK_TARGETS_SHAREDMODULE_H
