/* A small model as the translation would write it: y = exp(x · W + b), in two dispatches with a barrier between.
 * Function 0 has four rows; function 1 as many as its symbolic dim says. Compiled to bitcode when the tests are built.
 */
#include "runtime/abi/entry.c"

#include "runtime/kernels/kernels.h"

enum { K = 3, N = 5, BIAS_OFFSET = K * VMPK_PANEL * 4 };

static vmpk_status_t gemm_rows(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)y, (void)z;
  const float *input = vmpk_abi_binding(args, 0);
  const uint8_t *weights = vmpk_abi_binding(args, 1);
  float *output = vmpk_abi_binding(args, 2);
  int64_t rows = vmpk_abi_constant(args, 3), per_group = vmpk_abi_constant(args, 4);
  int64_t begin = (int64_t)x * per_group, count = rows - begin < per_group ? rows - begin : per_group;
  vmpk_gemm_f32(input + begin * K, K, (const float *)weights, output + begin * N, N, count, N, K,
                (const float *)(weights + BIAS_OFFSET), -__builtin_inff(), __builtin_inff());
  return VMPK_STATUS_OK;
}

static vmpk_status_t exp_all(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)x, (void)y, (void)z;
  const float *input = vmpk_abi_binding(args, 0);
  float *scratch = vmpk_abi_binding(args, 1), *output = vmpk_abi_binding(args, 2);
  int64_t count = vmpk_abi_constant(args, 3);
  /* likewise memset, or bzero on Apple's systems */
  __builtin_memset(output, 0, (size_t)count * 4);
  for (int64_t i = 0; i < count; ++i)
    scratch[i] = vmpk_exp_f32(input[i]) + output[i];
  /* a copy of unknown size: on most machines LLVM calls memcpy for it */
  __builtin_memcpy(output, scratch, (size_t)count * 4);
  return VMPK_STATUS_OK;
}

static int64_t rows_of(uint32_t function, const int64_t *dims) { return function == 0 ? 4 : vmpk_abi_dim(dims, 0); }

vmpk_status_t vmpk_module_measure(uint32_t function, const int64_t *dims, vmpk_measured_t *out) {
  if (function > 1)
    return VMPK_STATUS_NOT_FOUND;
  int64_t rows = rows_of(function, dims);
  vmpk_abi_set_arena_size(out, 128 + 2 * ((rows * N * 4 + 63) / 64 * 64));
  vmpk_abi_set_output_dim(out, 0, rows);
  vmpk_abi_set_output_dim(out, 1, N);
  return VMPK_STATUS_OK;
}

static vmpk_status_t forward(const vmpk_call_t *call, int64_t rows) {
  uint8_t *arena = vmpk_abi_arena(call);
  int64_t room = (rows * N * 4 + 63) / 64 * 64;
  vmpk_dispatch_t *args = vmpk_abi_begin_dispatch(arena, 0, 5);
  vmpk_abi_set_binding(args, 0, vmpk_abi_input(call, 0));
  vmpk_abi_set_binding(args, 1, (void *)vmpk_abi_weights(call));
  vmpk_abi_set_binding(args, 2, arena + 128);
  vmpk_abi_set_constant(args, 3, rows);
  /* a 64-bit division by no constant: 32-bit machines call a support function for it */
  int64_t per_group = 1 + rows / 2, groups = (rows + per_group - 1) / per_group;
  vmpk_abi_set_constant(args, 4, per_group);
  vmpk_status_t status = vmpk_abi_dispatch(call, gemm_rows, args, (uint32_t)groups, 1, 1);
  if (status == VMPK_STATUS_OK)
    status = vmpk_abi_barrier(call);
  if (status != VMPK_STATUS_OK)
    return status;
  args = vmpk_abi_begin_dispatch(arena, 1, 4);
  vmpk_abi_set_binding(args, 0, arena + 128);
  vmpk_abi_set_binding(args, 1, arena + 128 + room);
  vmpk_abi_set_binding(args, 2, vmpk_abi_output(call, 0));
  vmpk_abi_set_constant(args, 3, rows * N);
  status = vmpk_abi_dispatch(call, exp_all, args, 1, 1, 1);
  return status == VMPK_STATUS_OK ? vmpk_abi_barrier(call) : status;
}

vmpk_status_t vmpk_module_invoke(const vmpk_call_t *call) {
  uint32_t function = vmpk_abi_function(call);
  if (function > 1)
    return VMPK_STATUS_NOT_FOUND;
  return forward(call, rows_of(function, vmpk_abi_dims(call)));
}
