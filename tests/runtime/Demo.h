// What abi_demo.c is, and its answers computed in another way.
#ifndef VMPACK_TESTS_RUNTIME_DEMO_H
#define VMPACK_TESTS_RUNTIME_DEMO_H

#include "vmpk/vmpk.h"

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

extern "C" {
vmpk_status_t demo_query(uint32_t, vmpk_entry_t *);
vmpk_status_t demo_external_query(uint32_t, vmpk_entry_t *);
vmpk_status_t demo_import_query(uint32_t, vmpk_entry_t *);
vmpk_status_t demo_future_query(uint32_t, vmpk_entry_t *);
}

namespace demo {

inline constexpr float matrix[4][3] = {{0.5f, -1, 2}, {1.5f, 0.25f, -0.5f}, {-2, 1, 0.75f}, {1, 3, -1.25f}};
inline constexpr float bias[3] = {0.5f, -0.25f, 1};

/// The bytes of the demo's weights file, aligned as mmap would.
struct alignas(VMPK_ALIGNMENT) Weights {
  float values[16];
};
inline Weights weights() {
  Weights result{};
  std::memcpy(result.values, matrix, sizeof matrix);
  std::memcpy(result.values + 12, bias, sizeof bias);
  return result;
}

inline std::string text(vmpk_text_t value) { return std::string(value.data, value.size); }

inline vmpk_tensor_t tensor(void *data, uint64_t size, std::vector<int64_t> dims, uint32_t dtype = 0) {
  vmpk_tensor_t result{};
  result.data = data;
  result.size = size;
  result.dtype = dtype;
  result.rank = static_cast<uint32_t>(dims.size());
  for (size_t i = 0; i < dims.size(); ++i)
    result.dims[i] = dims[i];
  return result;
}

/// One call of `affine` on `rows` rows of known numbers.
struct Affine {
  explicit Affine(int64_t rows) : rows(rows), x(rows * 4), y(rows * 3, -1.0f), mask(rows) {
    for (int64_t i = 0; i < rows * 4; ++i)
      x[i] = 0.125f * static_cast<float>((i * 7 + rows) % 23) - 1.0f;
    for (int64_t i = 0; i < rows; ++i)
      mask[i] = static_cast<int32_t>(i % 3);
  }

  vmpk_status_t run(vmpk_instance_t *instance, vmpk_error_t *error = nullptr) {
    vmpk_tensor_t inputs[] = {tensor(x.data(), x.size() * 4, {rows, 4}), tensor(mask.data(), mask.size() * 4, {rows})};
    vmpk_tensor_t output = tensor(y.data(), y.size() * 4, {});
    return vmpk_instance_invoke(instance, 0, inputs, 2, &output, 1, error);
  }

  /// All numbers are small multiples of powers of two: float arithmetic on them is exact.
  std::vector<float> expected(float shift = 0) const {
    std::vector<float> result;
    for (int64_t n = 0; n < rows; ++n)
      for (int j = 0; j < 3; ++j) {
        double sum = bias[j];
        for (int i = 0; i < 4; ++i)
          sum += static_cast<double>(x[n * 4 + i]) * matrix[i][j];
        result.push_back(static_cast<float>((sum > 0 ? sum : 0) * mask[n] + shift));
      }
    return result;
  }

  int64_t rows;
  std::vector<float> x, y;
  std::vector<int32_t> mask;
};

/// A module and an instance of it, released at the end.
struct Loaded {
  vmpk_module_t *module = nullptr;
  vmpk_instance_t *instance = nullptr;
  vmpk_error_t error{};

  explicit Loaded(vmpk_query_fn query = demo_query, const vmpk_host_t *host = nullptr) {
    if (vmpk_module_create(query, nullptr, &module, &error) == VMPK_STATUS_OK)
      vmpk_instance_create(module, host, nullptr, &instance, &error);
  }
  Loaded(const Loaded &) = delete;
  ~Loaded() {
    vmpk_instance_destroy(instance);
    vmpk_module_release(module);
  }
};

} // namespace demo

#endif // VMPACK_TESTS_RUNTIME_DEMO_H
