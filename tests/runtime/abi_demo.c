/* abi_demo.c - a hand-written twin of a generated module: tests the interface with no compiler.
 *
 * Built twice: linked into the tests (DEMO_QUERY is vmpk_demo_query) and as shared objects (vmpk_query). DEMO_SCALE
 * makes versions of it that can be told apart: "double" multiplies by it. */
#define VMPK_MODULE_SIDE 1
#include "abi_demo.h"

#include <stddef.h>

#ifndef DEMO_QUERY
#define DEMO_QUERY vmpk_demo_query
#endif
#ifndef DEMO_SCALE
#define DEMO_SCALE 2
#endif

/* ---- The table -------------------------------------------------------------------------------------------------- */

enum { TENSORS = 10, ENTRIES = 12 };

typedef struct {
  vmpk_table_header_t header;
  vmpk_table_function_t functions[DEMO_FUNCTIONS];
  vmpk_table_dim_t linear_dims[1], join_dims[2];
  vmpk_table_tensor_t tensors[TENSORS];
  int64_t entries[ENTRIES];
  vmpk_table_dispatch_t dispatches[DEMO_DISPATCHES];
  vmpk_table_import_t imports[1];
  char demo[4], linear[6], join[4], twice[6], fail[4], gemm[4], relu[4], node[6];
  char n[1], m[1], x[1], y[1], a[1], b[1], c[1], clock[5], padding[5];
} demo_table_t;

#define SPAN(field, from, count) {(uint32_t)(offsetof(demo_table_t, field) + (from)), (count)}
#define TEXT(field) SPAN(field, 0, sizeof(((demo_table_t *)0)->field))
#define DIM_ENTRIES(from, count) SPAN(entries, (from) * sizeof(int64_t), count)
#define TENSOR_ROWS(from, count) SPAN(tensors, (from) * sizeof(vmpk_table_tensor_t), count)

static const demo_table_t table = {
    .header = {.magic = {'V', 'M', 'P', 'K', 'T', 'B', 'L', '1'},
               .size = sizeof(vmpk_table_header_t),
               .abi_version = VMPK_ABI_VERSION,
               .table_size = sizeof(demo_table_t),
               .digest = {0xab, 0x1d, 0xe0, DEMO_SCALE},
               .weights_digest = {0x19, 0x42, 0xdb, 0x73, 0x9f, 0x6b, 0x29, 0x90, 0x30, 0x79, 0xf9,
                                  0x5b, 0xef, 0x4f, 0xe2, 0x6d, 0x9e, 0xd8, 0xc1, 0xa7, 0xdf, 0x95,
                                  0x8f, 0x02, 0xb9, 0xcd, 0x15, 0x21, 0x50, 0xe3, 0xa4, 0x6e},
               .weights_size = DEMO_WEIGHTS_SIZE,
               .stack_size = 512,
               .name = TEXT(demo),
               .functions = SPAN(functions, 0, DEMO_FUNCTIONS),
               .dispatches = SPAN(dispatches, 0, DEMO_DISPATCHES),
               .imports = SPAN(imports, 0, 1),
               .function_size = sizeof(vmpk_table_function_t),
               .dispatch_size = sizeof(vmpk_table_dispatch_t),
               .import_size = sizeof(vmpk_table_import_t),
               .tensor_size = sizeof(vmpk_table_tensor_t),
               .dim_size = sizeof(vmpk_table_dim_t)},
    .functions = {{TEXT(linear), SPAN(linear_dims, 0, 1), TENSOR_ROWS(0, 1), TENSOR_ROWS(1, 1), UINT64_MAX},
                  {TEXT(join), SPAN(join_dims, 0, 2), TENSOR_ROWS(2, 3), TENSOR_ROWS(5, 1), UINT64_MAX},
                  {TEXT(twice), {0, 0}, TENSOR_ROWS(6, 1), TENSOR_ROWS(7, 1), 64},
                  {TEXT(fail), {0, 0}, TENSOR_ROWS(8, 1), TENSOR_ROWS(9, 1), 64}},
    .linear_dims = {{TEXT(n), 1, 64}},
    .join_dims = {{TEXT(n), 0, 1000}, {TEXT(m), 0, INT64_MAX}},
    .tensors = {{TEXT(x), DIM_ENTRIES(0, 2), VMPK_DTYPE_F32, 0},
                {TEXT(y), DIM_ENTRIES(2, 2), VMPK_DTYPE_F32, 0},
                {TEXT(a), DIM_ENTRIES(4, 1), VMPK_DTYPE_I32, 0},
                {TEXT(b), DIM_ENTRIES(4, 1), VMPK_DTYPE_I32, 0},
                {TEXT(c), DIM_ENTRIES(5, 1), VMPK_DTYPE_I32, 0},
                {TEXT(y), DIM_ENTRIES(6, 1), VMPK_DTYPE_I32, 0},
                {TEXT(x), DIM_ENTRIES(8, 2), VMPK_DTYPE_F64, 0},
                {TEXT(y), DIM_ENTRIES(8, 2), VMPK_DTYPE_F64, 0},
                {TEXT(x), DIM_ENTRIES(0, 0), VMPK_DTYPE_I32, 0},
                {TEXT(y), DIM_ENTRIES(0, 0), VMPK_DTYPE_I32, 0}},
    .entries = {-1, 4, -1, 3, -1, -2, VMPK_DIM_COMPUTED, 0, 2, 3, 0, 0},
    .dispatches = {{TEXT(gemm), TEXT(node), 0, 0},
                   {TEXT(relu), TEXT(node), 0, 0},
                   {TEXT(join), TEXT(node), 0, 0},
                   {TEXT(twice), TEXT(node), 6, 96},
                   {TEXT(fail), TEXT(node), 0, 0}},
    .imports = {{TEXT(clock), 1, 0}},
    .demo = {'d', 'e', 'm', 'o'},
    .linear = {'l', 'i', 'n', 'e', 'a', 'r'},
    .join = {'j', 'o', 'i', 'n'},
    .twice = {'d', 'o', 'u', 'b', 'l', 'e'},
    .fail = {'f', 'a', 'i', 'l'},
    .gemm = {'g', 'e', 'm', 'm'},
    .relu = {'r', 'e', 'l', 'u'},
    .node = {'n', 'o', 'd', 'e', '_', '1'},
    .n = {'n'},
    .m = {'m'},
    .x = {'x'},
    .y = {'y'},
    .a = {'a'},
    .b = {'b'},
    .c = {'c'},
    .clock = {'c', 'l', 'o', 'c', 'k'}};

/* W by rows, b, zero. */
static const float weights[16]
    __attribute__((aligned(64))) = {1, 2, -1, 0.5f, -2, 1, 0, 1, 3, -1, 0.25f, 2, 0.5f, -1, 0, 0};

/* ---- The dispatches --------------------------------------------------------------------------------------------- */

static vmpk_status_t gemm(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)y, (void)z;
  const float *in = (const float *)vmpk_abi_binding(args, 0) + 4 * x;
  const float *w = vmpk_abi_binding(args, 1);
  float *out = (float *)vmpk_abi_binding(args, 2) + 3 * x;
  for (int j = 0; j < 3; ++j) {
    float sum = w[12 + j];
    for (int k = 0; k < 4; ++k)
      sum += in[k] * w[3 * k + j];
    out[j] = sum;
  }
  return VMPK_STATUS_OK;
}

/* The grid is (3, rows, 1): one element a workgroup. */
static vmpk_status_t relu(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)z;
  const float *in = vmpk_abi_binding(args, 0);
  float *out = vmpk_abi_binding(args, 1);
  int64_t i = 3 * (int64_t)y + x;
  out[i] = in[i] > 0 ? in[i] : 0;
  return VMPK_STATUS_OK;
}

static vmpk_status_t copy_i32(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)x, (void)y, (void)z;
  const int32_t *in = vmpk_abi_binding(args, 0);
  int32_t *out = vmpk_abi_binding(args, 1);
  for (int64_t i = 0; i < vmpk_abi_constant(args, 2); ++i)
    out[i] = in[i];
  return VMPK_STATUS_OK;
}

static vmpk_status_t twice(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)y, (void)z;
  const double *in = vmpk_abi_binding(args, 0);
  ((double *)vmpk_abi_binding(args, 1))[x] = DEMO_SCALE * in[x];
  return VMPK_STATUS_OK;
}

static vmpk_status_t fail(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z) {
  (void)y, (void)z;
  return x == 5 ? (vmpk_status_t) * (const int32_t *)vmpk_abi_binding(args, 0) : VMPK_STATUS_OK;
}

/* ---- The schedules ---------------------------------------------------------------------------------------------- */

/* arena: two argument blocks of 64 bytes, then the sums */
static vmpk_status_t run_linear(const vmpk_call_t *call) {
  uint8_t *arena = vmpk_abi_arena(call);
  uint32_t rows = (uint32_t)vmpk_abi_dim(vmpk_abi_dims(call), 0);
  vmpk_dispatch_t *args = vmpk_abi_begin_dispatch(arena, 0, 3);
  vmpk_abi_set_binding(args, 0, vmpk_abi_input(call, 0));
  vmpk_abi_set_binding(args, 1, (void *)(uintptr_t)vmpk_abi_weights(call));
  vmpk_abi_set_binding(args, 2, arena + 128);
  vmpk_status_t status = vmpk_abi_dispatch(call, gemm, args, rows, 1, 1);
  if (status == VMPK_STATUS_OK)
    status = vmpk_abi_barrier(call);
  if (status != VMPK_STATUS_OK)
    return status;
  args = vmpk_abi_begin_dispatch(arena + 64, 1, 2);
  vmpk_abi_set_binding(args, 0, arena + 128);
  vmpk_abi_set_binding(args, 1, vmpk_abi_output(call, 0));
  status = vmpk_abi_dispatch(call, relu, args, 3, rows, 1);
  return status == VMPK_STATUS_OK ? vmpk_abi_barrier(call) : status;
}

/* Three copies that may overlap in time: one barrier behind all. */
static vmpk_status_t run_join(const vmpk_call_t *call) {
  int64_t n = vmpk_abi_dim(vmpk_abi_dims(call), 0), m = vmpk_abi_dim(vmpk_abi_dims(call), 1);
  int32_t *out = vmpk_abi_output(call, 0);
  for (int64_t i = 0; i < 3; ++i) {
    vmpk_dispatch_t *args = vmpk_abi_begin_dispatch(vmpk_abi_arena(call) + 64 * i, 2, 3);
    vmpk_abi_set_binding(args, 0, vmpk_abi_input(call, i));
    vmpk_abi_set_binding(args, 1, n > 0 || i == 2 ? out + i * n : out);
    vmpk_abi_set_constant(args, 2, i == 2 ? m : n);
    vmpk_status_t status = vmpk_abi_dispatch(call, copy_i32, args, 1, 1, 1);
    if (status != VMPK_STATUS_OK)
      return status;
  }
  return vmpk_abi_barrier(call);
}

static vmpk_status_t run_static(const vmpk_call_t *call, uint32_t ordinal, vmpk_dispatch_fn fn, uint32_t groups) {
  vmpk_dispatch_t *args = vmpk_abi_begin_dispatch(vmpk_abi_arena(call), ordinal, 2);
  vmpk_abi_set_binding(args, 0, vmpk_abi_input(call, 0));
  vmpk_abi_set_binding(args, 1, vmpk_abi_output(call, 0));
  vmpk_status_t status = vmpk_abi_dispatch(call, fn, args, groups, 1, 1);
  return status == VMPK_STATUS_OK ? vmpk_abi_barrier(call) : status;
}

/* ---- The entry -------------------------------------------------------------------------------------------------- */

static vmpk_status_t measure(uint32_t function, const int64_t *dims, vmpk_measured_t *out) {
  switch (function) {
  case DEMO_LINEAR:
    vmpk_abi_set_arena_size(out, 128 + 12 * vmpk_abi_dim(dims, 0));
    vmpk_abi_set_output_dim(out, 0, vmpk_abi_dim(dims, 0));
    vmpk_abi_set_output_dim(out, 1, 3);
    return VMPK_STATUS_OK;
  case DEMO_JOIN:
    vmpk_abi_set_arena_size(out, 192);
    vmpk_abi_set_output_dim(out, 0, 2 * vmpk_abi_dim(dims, 0) + vmpk_abi_dim(dims, 1));
    return VMPK_STATUS_OK;
  case DEMO_DOUBLE:
    vmpk_abi_set_arena_size(out, 64);
    vmpk_abi_set_output_dim(out, 0, 2);
    vmpk_abi_set_output_dim(out, 1, 3);
    return VMPK_STATUS_OK;
  case DEMO_FAIL:
    vmpk_abi_set_arena_size(out, 64);
    return VMPK_STATUS_OK;
  default:
    return VMPK_STATUS_NOT_FOUND;
  }
}

static vmpk_status_t invoke(const vmpk_call_t *call) {
  switch (vmpk_abi_function(call)) {
  case DEMO_LINEAR:
    return run_linear(call);
  case DEMO_JOIN:
    return run_join(call);
  case DEMO_DOUBLE:
    return run_static(call, 3, twice, 6);
  case DEMO_FAIL:
    return run_static(call, 4, fail, 40);
  default:
    return VMPK_STATUS_NOT_FOUND;
  }
}

__attribute__((visibility("default"))) vmpk_status_t DEMO_QUERY(uint32_t host_abi_version, vmpk_entry_t *out);

vmpk_status_t DEMO_QUERY(uint32_t host_abi_version, vmpk_entry_t *out) {
  if (!out || out->size < offsetof(vmpk_entry_t, table))
    return VMPK_STATUS_INVALID_ARGUMENT;
  out->abi_version = VMPK_ABI_VERSION;
  if (host_abi_version != VMPK_ABI_VERSION)
    return VMPK_STATUS_VERSION_MISMATCH;
  if (out->size < sizeof *out)
    return VMPK_STATUS_INVALID_ARGUMENT;
  out->size = sizeof *out;
  out->table_slot = out->weights_slot = out->measure_slot = out->invoke_slot = 0;
  out->table = (const uint8_t *)&table;
  out->table_size = sizeof table;
  out->weights = (const uint8_t *)weights;
  out->measure = measure;
  out->invoke = invoke;
  return VMPK_STATUS_OK;
}
