/* A hand-written twin of a generated module, which tests the interface without the compiler. Freestanding C.
 *
 *   0 affine: y[N,3] = max(x[N,4] · W + b, 0) * mask[N] + DEMO_SHIFT     N in 1..64; two dispatches, arena by measure
 *   1 halve:  half[(M + 1) / 2] = v[0], v[2], v[4] …                     a computed output dim, no arena bound to M
 *   2 fail:   copies codes[K]; a workgroup fails with its code, if that is not zero
 *
 * Build variants: DEMO_QUERY (the query's name), DEMO_SHIFT, DEMO_EXTERNAL_WEIGHTS, DEMO_REQUIRED_IMPORT (1), and
 * DEMO_ABI_VERSION (what it claims to serve). */
#define VMPK_MODULE_SIDE 1
#include "vmpk/abi.h"

#include <stddef.h>

#ifndef DEMO_QUERY
#define DEMO_QUERY vmpk_query
#endif
#ifndef DEMO_SHIFT
#define DEMO_SHIFT 0
#endif
#ifndef DEMO_REQUIRED_IMPORT
#define DEMO_REQUIRED_IMPORT 0
#endif
#ifndef DEMO_ABI_VERSION
#define DEMO_ABI_VERSION VMPK_ABI_VERSION
#endif

enum { IN = 4, OUT = 3 };

/* ---- Weights ---------------------------------------------------------------------------------------------------- */

typedef struct weights {
  float matrix[IN][OUT];
  float bias[OUT];
  float padding;
} weights_t;

#ifndef DEMO_EXTERNAL_WEIGHTS
static const weights_t embedded __attribute__((aligned(VMPK_ALIGNMENT))) = {
    {{0.5f, -1.0f, 2.0f}, {1.5f, 0.25f, -0.5f}, {-2.0f, 1.0f, 0.75f}, {1.0f, 3.0f, -1.25f}}, {0.5f, -0.25f, 1.0f}, 0};
#endif

/* ---- Module table ----------------------------------------------------------------------------------------------- */

typedef struct demo_table {
  vmpk_table_header_t header;
  vmpk_table_function_t functions[3];
  vmpk_table_dim_t dims[3];
  vmpk_table_tensor_t affine_inputs[2], affine_outputs[1], halve_inputs[1], halve_outputs[1], fail_inputs[1],
      fail_outputs[1];
  int64_t x_shape[2], mask_shape[1], y_shape[2], v_shape[1], half_shape[1], codes_shape[1];
  vmpk_table_dispatch_t dispatches[4];
  vmpk_table_import_t imports[1];
  char name[8], affine[6], halve[5], fail[4], n[1], m[1], k[1], x[1], mask[4], y[1], v[1], half[4], codes[5], copied[6];
  char matmul[8], relu[6], matmul_nodes[8], relu_nodes[8], import_name[10];
} demo_table_t;

#define SPAN(field, type) {offsetof(demo_table_t, field), sizeof(((demo_table_t *)0)->field) / sizeof(type)}
#define TEXT(field) SPAN(field, char)
#define TENSOR(text, shape, dtype) {TEXT(text), SPAN(shape, int64_t), dtype, 0}

static const demo_table_t table __attribute__((aligned(8))) = {
    .header = {.magic = {'V', 'M', 'P', 'K', 'T', 'B', 'L', '1'},
               .size = sizeof(vmpk_table_header_t),
               .abi_version = DEMO_ABI_VERSION,
               .table_size = sizeof(demo_table_t),
               .digest = {0xde, 0x60},
               .weights_digest = {0x6c, 0xb2, 0x26, 0x7d, 0x89, 0x22, 0x4b, 0x0c, 0x2a, 0x43, 0x85,
                                  0x93, 0x0a, 0xe5, 0x60, 0x0f, 0x51, 0x2a, 0xd7, 0x62, 0x4f, 0x12,
                                  0xd1, 0xc3, 0xdd, 0x64, 0x2b, 0x11, 0xf1, 0x68, 0x8f, 0x17},
               .weights_size = sizeof(weights_t),
               .stack_size = 1024,
               .name = TEXT(name),
               .functions = SPAN(functions, vmpk_table_function_t),
               .dispatches = SPAN(dispatches, vmpk_table_dispatch_t),
               .imports = SPAN(imports, vmpk_table_import_t),
               .function_size = sizeof(vmpk_table_function_t),
               .dispatch_size = sizeof(vmpk_table_dispatch_t),
               .import_size = sizeof(vmpk_table_import_t),
               .tensor_size = sizeof(vmpk_table_tensor_t),
               .dim_size = sizeof(vmpk_table_dim_t)},
    .functions = {{TEXT(affine),
                   {offsetof(demo_table_t, dims[0]), 1},
                   SPAN(affine_inputs, vmpk_table_tensor_t),
                   SPAN(affine_outputs, vmpk_table_tensor_t),
                   UINT64_MAX},
                  {TEXT(halve),
                   {offsetof(demo_table_t, dims[1]), 1},
                   SPAN(halve_inputs, vmpk_table_tensor_t),
                   SPAN(halve_outputs, vmpk_table_tensor_t),
                   64},
                  {TEXT(fail),
                   {offsetof(demo_table_t, dims[2]), 1},
                   SPAN(fail_inputs, vmpk_table_tensor_t),
                   SPAN(fail_outputs, vmpk_table_tensor_t),
                   64}},
    .dims = {{TEXT(n), 1, 64}, {TEXT(m), 0, INT64_MAX}, {TEXT(k), 0, 1 << 20}},
    .affine_inputs = {TENSOR(x, x_shape, VMPK_DTYPE_F32), TENSOR(mask, mask_shape, VMPK_DTYPE_I32)},
    .affine_outputs = {TENSOR(y, y_shape, VMPK_DTYPE_F32)},
    .halve_inputs = {TENSOR(v, v_shape, VMPK_DTYPE_F32)},
    .halve_outputs = {TENSOR(half, half_shape, VMPK_DTYPE_F32)},
    .fail_inputs = {TENSOR(codes, codes_shape, VMPK_DTYPE_I32)},
    .fail_outputs = {TENSOR(copied, codes_shape, VMPK_DTYPE_I32)},
    .x_shape = {-1, IN},
    .mask_shape = {-1},
    .y_shape = {-1, OUT},
    .v_shape = {-1},
    .half_shape = {VMPK_DIM_COMPUTED},
    .codes_shape = {-1},
    .dispatches = {{TEXT(matmul), TEXT(matmul_nodes), 0, 0},
                   {TEXT(relu), TEXT(relu_nodes), 0, 0},
                   {TEXT(halve), TEXT(halve), 0, 0},
                   {TEXT(fail), TEXT(fail), 7, 8}},
    .imports = {{TEXT(import_name), 3, DEMO_REQUIRED_IMPORT}},
    .name = {'a', 'b', 'i', '_', 'd', 'e', 'm', 'o'},
    .affine = {'a', 'f', 'f', 'i', 'n', 'e'},
    .halve = {'h', 'a', 'l', 'v', 'e'},
    .fail = {'f', 'a', 'i', 'l'},
    .n = {'N'},
    .m = {'M'},
    .k = {'K'},
    .x = {'x'},
    .mask = {'m', 'a', 's', 'k'},
    .y = {'y'},
    .v = {'v'},
    .half = {'h', 'a', 'l', 'f'},
    .codes = {'c', 'o', 'd', 'e', 's'},
    .copied = {'c', 'o', 'p', 'i', 'e', 'd'},
    .matmul = {'m', 'a', 't', 'm', 'u', 'l', '_', '0'},
    .relu = {'r', 'e', 'l', 'u', '_', '1'},
    .matmul_nodes = {'M', 'a', 't', 'M', 'u', 'l', '_', '0'},
    .relu_nodes = {'R', 'e', 'l', 'u', '+', 'M', 'u', 'l'},
    .import_name = {'d', 'e', 'm', 'o', '.', 's', 'c', 'a', 'l', 'e'},
};

/* ---- Dispatches ------------------------------------------------------------------------------------------------- */

/* One workgroup a row: x, weights, hidden. */
static vmpk_status_t matmul(const vmpk_dispatch_t *args, uint32_t row, uint32_t y, uint32_t z) {
  (void)y, (void)z;
  const float *x = (const float *)vmpk_abi_binding(args, 0) + (size_t)row * IN;
  const weights_t *weights = vmpk_abi_binding(args, 1);
  float *hidden = (float *)vmpk_abi_binding(args, 2) + (size_t)row * OUT;
  for (int j = 0; j < OUT; ++j) {
    float sum = weights->bias[j];
    for (int i = 0; i < IN; ++i)
      sum += x[i] * weights->matrix[i][j];
    hidden[j] = sum;
  }
  return VMPK_STATUS_OK;
}

/* One workgroup an element: hidden, mask, y, and the shift as a constant. */
static vmpk_status_t relu_mask(const vmpk_dispatch_t *args, uint32_t column, uint32_t row, uint32_t z) {
  (void)z;
  const float *hidden = vmpk_abi_binding(args, 0);
  const int32_t *mask = vmpk_abi_binding(args, 1);
  float *y = vmpk_abi_binding(args, 2);
  size_t i = (size_t)row * OUT + column;
  y[i] = (hidden[i] > 0 ? hidden[i] : 0) * (float)mask[row] + (float)vmpk_abi_constant(args, 3);
  return VMPK_STATUS_OK;
}

static vmpk_status_t halve(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)y, (void)z;
  ((float *)vmpk_abi_binding(args, 1))[x] = ((const float *)vmpk_abi_binding(args, 0))[2 * (size_t)x];
  return VMPK_STATUS_OK;
}

static vmpk_status_t fail(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)y, (void)z;
  const int32_t *codes = vmpk_abi_binding(args, 0);
  ((int32_t *)vmpk_abi_binding(args, 1))[x] = codes[x];
  return codes[x];
}

/* ---- Schedules -------------------------------------------------------------------------------------------------- */

static vmpk_status_t run_affine(const vmpk_call_t *call) {
  uint8_t *arena = vmpk_abi_arena(call);
  uint8_t *hidden = arena + 128;
  uint32_t rows = (uint32_t)vmpk_abi_dim(vmpk_abi_dims(call), 0);
  vmpk_dispatch_t *args = vmpk_abi_begin_dispatch(arena, 0, 3);
  vmpk_abi_set_binding(args, 0, vmpk_abi_input(call, 0));
  vmpk_abi_set_binding(args, 1, (void *)vmpk_abi_weights(call));
  vmpk_abi_set_binding(args, 2, hidden);
  vmpk_status_t status = vmpk_abi_dispatch(call, matmul, args, rows, 1, 1);
  if (status == VMPK_STATUS_OK)
    status = vmpk_abi_barrier(call);
  if (status != VMPK_STATUS_OK)
    return status;
  args = vmpk_abi_begin_dispatch(arena + 64, 1, 4);
  vmpk_abi_set_binding(args, 0, hidden);
  vmpk_abi_set_binding(args, 1, vmpk_abi_input(call, 1));
  vmpk_abi_set_binding(args, 2, vmpk_abi_output(call, 0));
  vmpk_abi_set_constant(args, 3, DEMO_SHIFT);
  status = vmpk_abi_dispatch(call, relu_mask, args, OUT, rows, 1);
  return status == VMPK_STATUS_OK ? vmpk_abi_barrier(call) : status;
}

static vmpk_status_t run_simple(const vmpk_call_t *call, vmpk_dispatch_fn fn, uint32_t ordinal, int64_t grid) {
  vmpk_dispatch_t *args = vmpk_abi_begin_dispatch(vmpk_abi_arena(call), ordinal, 2);
  vmpk_abi_set_binding(args, 0, vmpk_abi_input(call, 0));
  vmpk_abi_set_binding(args, 1, vmpk_abi_output(call, 0));
  vmpk_status_t status = vmpk_abi_dispatch(call, fn, args, (uint32_t)grid, 1, 1);
  return status == VMPK_STATUS_OK ? vmpk_abi_barrier(call) : status;
}

/* Not (m + 1) / 2: m may be INT64_MAX. */
static int64_t half_of(int64_t m) { return m / 2 + m % 2; }

static vmpk_status_t demo_invoke(const vmpk_call_t *call) {
  int64_t size = vmpk_abi_dim(vmpk_abi_dims(call), 0);
  switch (vmpk_abi_function(call)) {
  case 0:
    return run_affine(call);
  case 1:
    return run_simple(call, halve, 2, half_of(size));
  case 2:
    return run_simple(call, fail, 3, size);
  default:
    return VMPK_STATUS_NOT_FOUND;
  }
}

static vmpk_status_t demo_measure(uint32_t function, const int64_t *dims, vmpk_measured_t *out) {
  int64_t size = vmpk_abi_dim(dims, 0);
  if (function > 2)
    return VMPK_STATUS_NOT_FOUND;
  vmpk_abi_set_arena_size(out, function == 0 ? 128 + size * OUT * 4 : 64);
  vmpk_abi_set_output_dim(out, 0, function == 1 ? half_of(size) : size);
  if (function == 0)
    vmpk_abi_set_output_dim(out, 1, OUT);
  return VMPK_STATUS_OK;
}

__attribute__((visibility("default"))) vmpk_status_t DEMO_QUERY(uint32_t host_abi_version, vmpk_entry_t *out);

vmpk_status_t DEMO_QUERY(uint32_t host_abi_version, vmpk_entry_t *out) {
  if (!out || out->size < offsetof(vmpk_entry_t, table))
    return VMPK_STATUS_INVALID_ARGUMENT;
  out->abi_version = DEMO_ABI_VERSION;
  if (host_abi_version != DEMO_ABI_VERSION)
    return VMPK_STATUS_VERSION_MISMATCH;
  if (out->size < sizeof *out)
    return VMPK_STATUS_INVALID_ARGUMENT;
  out->size = sizeof *out;
  out->table_slot = out->weights_slot = out->measure_slot = out->invoke_slot = 0;
  out->table = (const uint8_t *)&table;
  out->table_size = sizeof table;
#ifndef DEMO_EXTERNAL_WEIGHTS
  out->weights = (const uint8_t *)&embedded;
#endif
  out->measure = demo_measure;
  out->invoke = demo_invoke;
  return VMPK_STATUS_OK;
}
