/* A hand-written twin of a compiled wasm module, for the JavaScript host: real entry points, a real table, dispatches
 * through the accessors of generated code. Weights are 8 f32 with padding between: W[3][2] first, b[2] at the very end.
 *
 *   main(x f32[batch,3], ids i64[batch], flags bool[batch]) -> y f32[batch,2] = flags ? relu(x.W + b + ids) : 0,
 *                                                               twice i64[batch] = 2 ids, not bool[batch]
 *   repeat(x i32[n]) -> y i32[2n] = x, x     the arena and the output's dim are computed by measure
 *   pair(a f32[n,m], b f32[n,m]) -> sum f32[n,m]
 *   answer(what i32[1]) -> echo i32[1]       fails with the status `what`; -1 traps
 *   madd(x f32[4]) -> y f32[4] = x * x + x   by the variant's own instruction */
#include "runtime/abi/entry.c"

#ifdef __wasm_simd128__
#include <wasm_simd128.h>
#endif

enum { WEIGHTS_SIZE = 262144, B_OFFSET = WEIGHTS_SIZE - 8, BATCH_MAXIMUM = 1024 };

/* ---- The table: one constant whose spans are offsets into itself ------------------------------------------------ */

/* clang-format off */
#define TEXT_FIELDS(X) \
  X(twin) X(main) X(repeat) X(pair) X(answer) X(madd) X(batch) X(n) X(m) X(x) X(ids) X(flags) X(y) X(twice) X(not) \
  X(a) X(b) X(sum) X(what) X(echo) X(linear) X(relu)
/* clang-format on */

typedef struct text {
#define X(word) char word[sizeof #word];
  TEXT_FIELDS(X)
#undef X
} text_t;

typedef struct table {
  vmpk_table_header_t header;
  vmpk_table_function_t functions[5];
  vmpk_table_dim_t main_dims[1], repeat_dims[1], pair_dims[2];
  vmpk_table_tensor_t main_inputs[3], main_outputs[3], repeat_inputs[1], repeat_outputs[1], pair_inputs[2],
      pair_outputs[1], answer_inputs[1], answer_outputs[1], madd_inputs[1], madd_outputs[1];
  int64_t batch_by_3[2], batch_by_2[2], first[1], computed[1], both[2], one[1], four[1];
  vmpk_table_dispatch_t dispatches[2];
  text_t text;
} table_t;

#define WORD(word) {offsetof(table_t, text) + offsetof(text_t, word), sizeof #word - 1}
#define ARRAY(field) {offsetof(table_t, field), sizeof(((table_t *)0)->field) / sizeof(((table_t *)0)->field[0])}
#define TENSOR(word, shape, type) {WORD(word), ARRAY(shape), VMPK_DTYPE_##type, 0}

static const table_t table __attribute__((aligned(8))) = {
    .header = {.magic = {'V', 'M', 'P', 'K', 'T', 'B', 'L', '1'},
               .size = sizeof(vmpk_table_header_t),
               .abi_version = VMPK_ABI_VERSION,
               .table_size = sizeof(table_t),
               .digest = {0xab, 0xcd, [31] = 0xef},
               .weights_size = WEIGHTS_SIZE,
               .stack_size = 512,
               .name = WORD(twin),
               .functions = ARRAY(functions),
               .dispatches = ARRAY(dispatches),
               .function_size = sizeof(vmpk_table_function_t),
               .dispatch_size = sizeof(vmpk_table_dispatch_t),
               .import_size = sizeof(vmpk_table_import_t),
               .tensor_size = sizeof(vmpk_table_tensor_t),
               .dim_size = sizeof(vmpk_table_dim_t)},
    .functions = {{WORD(main), ARRAY(main_dims), ARRAY(main_inputs), ARRAY(main_outputs), UINT64_MAX},
                  {WORD(repeat), ARRAY(repeat_dims), ARRAY(repeat_inputs), ARRAY(repeat_outputs), UINT64_MAX},
                  {WORD(pair), ARRAY(pair_dims), ARRAY(pair_inputs), ARRAY(pair_outputs), 64},
                  {WORD(answer), {0, 0}, ARRAY(answer_inputs), ARRAY(answer_outputs), 0},
                  {WORD(madd), {0, 0}, ARRAY(madd_inputs), ARRAY(madd_outputs), 0}},
    .main_dims = {{WORD(batch), 1, BATCH_MAXIMUM}},
    .repeat_dims = {{WORD(n), 0, INT64_MAX}},
    .pair_dims = {{WORD(n), 2, INT64_MAX}, {WORD(m), 0, INT64_MAX}},
    .main_inputs = {TENSOR(x, batch_by_3, F32), TENSOR(ids, first, I64), TENSOR(flags, first, BOOL)},
    .main_outputs = {TENSOR(y, batch_by_2, F32), TENSOR(twice, first, I64), TENSOR(not, first, BOOL)},
    .repeat_inputs = {TENSOR(x, first, I32)},
    .repeat_outputs = {TENSOR(y, computed, I32)},
    .pair_inputs = {TENSOR(a, both, F32), TENSOR(b, both, F32)},
    .pair_outputs = {TENSOR(sum, both, F32)},
    .answer_inputs = {TENSOR(what, one, I32)},
    .answer_outputs = {TENSOR(echo, one, I32)},
    .madd_inputs = {TENSOR(x, four, F32)},
    .madd_outputs = {TENSOR(y, four, F32)},
    .batch_by_3 = {-1, 3},
    .batch_by_2 = {-1, 2},
    .first = {-1},
    .computed = {VMPK_DIM_COMPUTED},
    .both = {-1, -2},
    .one = {1},
    .four = {4},
    .dispatches = {{WORD(linear), WORD(main), 12, 0}, {WORD(relu), WORD(y), 0, 48}},
    .text = {
#define X(word) .word = #word,
        TEXT_FIELDS(X)
#undef X
    }};

/* Volatile, so that the table's fields stay out of the code: tests change them in the file. */
static const table_t *volatile table_address = &table;
const uint8_t *vmpk_module_table(void) { return (const uint8_t *)table_address; }

#ifdef TWIN_EMBEDDED
static const struct {
  float w[6];
  uint8_t padding[B_OFFSET - 24];
  float b[2];
} weights __attribute__((aligned(64))) = {{1, 2, 3, 4, 5, 6}, {0}, {-20, 0.5f}};
const uint8_t *vmpk_module_weights(void) { return (const uint8_t *)&weights; }
#else
const uint8_t *vmpk_module_weights(void) { return 0; }
#endif

/* ---- Dispatches ------------------------------------------------------------------------------------------------- */

/* One row a workgroup. Operands: x, weights, the row-major result, rows. */
static vmpk_status_t linear(const vmpk_dispatch_t *args, uint32_t row, uint32_t y, uint32_t z) {
  const float *x = vmpk_abi_binding(args, 0);
  const uint8_t *bytes = vmpk_abi_binding(args, 1);
  float *result = vmpk_abi_binding(args, 2);
  const float *w = (const float *)bytes, *b = (const float *)(bytes + B_OFFSET);
  if (y || z || row >= vmpk_abi_constant(args, 3))
    return VMPK_STATUS_INTERNAL;
  for (int column = 0; column < 2; ++column) {
    float sum = b[column];
    for (int k = 0; k < 3; ++k)
      sum += x[row * 3 + k] * w[k * 2 + column];
    result[row * 2 + column] = sum;
  }
  return VMPK_STATUS_OK;
}

/* Operands: linear's result, ids, flags, y, twice, not. */
static vmpk_status_t relu(const vmpk_dispatch_t *args, uint32_t row, uint32_t y, uint32_t z) {
  (void)y, (void)z;
  const float *sums = vmpk_abi_binding(args, 0);
  int64_t id = ((const int64_t *)vmpk_abi_binding(args, 1))[row];
  uint8_t flag = ((const uint8_t *)vmpk_abi_binding(args, 2))[row];
  float *out = vmpk_abi_binding(args, 3);
  for (int i = 0; i < 2; ++i) {
    float sum = sums[row * 2 + i] + (float)id;
    out[row * 2 + i] = sum > 0 ? sum * flag : 0;
  }
  ((int64_t *)vmpk_abi_binding(args, 4))[row] = 2 * id;
  ((uint8_t *)vmpk_abi_binding(args, 5))[row] = flag ^ 1;
  return VMPK_STATUS_OK;
}

/* ---- The schedules ---------------------------------------------------------------------------------------------- */

static vmpk_status_t run_main(const vmpk_call_t *call) {
  int64_t rows = vmpk_abi_dim(vmpk_abi_dims(call), 0);
  uint8_t *arena = vmpk_abi_arena(call);
  if ((uintptr_t)arena % VMPK_ALIGNMENT || (uintptr_t)vmpk_abi_weights(call) % VMPK_ALIGNMENT ||
      call->arena_size < 128 + (uint64_t)rows * 8)
    return VMPK_STATUS_INTERNAL;
  vmpk_dispatch_t *args = vmpk_abi_begin_dispatch(arena, 0, 4);
  vmpk_abi_set_binding(args, 0, vmpk_abi_input(call, 0));
  vmpk_abi_set_binding(args, 1, (void *)(uintptr_t)vmpk_abi_weights(call));
  vmpk_abi_set_binding(args, 2, arena + 128);
  vmpk_abi_set_constant(args, 3, rows);
  vmpk_status_t status = vmpk_abi_dispatch(call, linear, args, (uint32_t)rows, 1, 1);
  if (status == VMPK_STATUS_OK)
    status = vmpk_abi_barrier(call);
  if (status != VMPK_STATUS_OK)
    return status;
  args = vmpk_abi_begin_dispatch(arena, 1, 6);
  vmpk_abi_set_binding(args, 0, arena + 128);
  vmpk_abi_set_binding(args, 1, vmpk_abi_input(call, 1));
  vmpk_abi_set_binding(args, 2, vmpk_abi_input(call, 2));
  for (int64_t i = 0; i < 3; ++i)
    vmpk_abi_set_binding(args, 3 + i, vmpk_abi_output(call, i));
  status = vmpk_abi_dispatch(call, relu, args, (uint32_t)rows, 1, 1);
  return status == VMPK_STATUS_OK ? vmpk_abi_barrier(call) : status;
}

static vmpk_status_t run_repeat(const vmpk_call_t *call) {
  int64_t n = vmpk_abi_dim(vmpk_abi_dims(call), 0);
  const int32_t *x = vmpk_abi_input(call, 0);
  int32_t *y = vmpk_abi_output(call, 0), *scratch = (int32_t *)vmpk_abi_arena(call);
  if (call->inputs[0].size != (uint64_t)n * 4 || call->outputs[0].size != (uint64_t)n * 8)
    return VMPK_STATUS_INTERNAL;
  for (int64_t i = 0; i < n; ++i)
    scratch[i] = x[i];
  for (int64_t i = 0; i < n; ++i)
    y[i] = y[n + i] = scratch[i];
  return VMPK_STATUS_OK;
}

static vmpk_status_t run_pair(const vmpk_call_t *call) {
  const float *a = vmpk_abi_input(call, 0), *b = vmpk_abi_input(call, 1);
  float *sum = vmpk_abi_output(call, 0);
  int64_t count = vmpk_abi_dim(vmpk_abi_dims(call), 0) * vmpk_abi_dim(vmpk_abi_dims(call), 1);
  for (int64_t i = 0; i < count; ++i)
    sum[i] = a[i] + b[i];
  return VMPK_STATUS_OK;
}

static vmpk_status_t run_answer(const vmpk_call_t *call) {
  int32_t what = *(const int32_t *)vmpk_abi_input(call, 0);
  if (what == -1)
    __builtin_trap();
  *(int32_t *)vmpk_abi_output(call, 0) = what;
  return what;
}

static vmpk_status_t run_madd(const vmpk_call_t *call) {
  const float *x = vmpk_abi_input(call, 0);
  float *y = vmpk_abi_output(call, 0);
#if defined(__wasm_relaxed_simd__)
  v128_t v = wasm_v128_load(x);
  wasm_v128_store(y, wasm_f32x4_relaxed_madd(v, v, v));
#elif defined(__wasm_simd128__)
  v128_t v = wasm_v128_load(x);
  wasm_v128_store(y, wasm_f32x4_add(wasm_f32x4_mul(v, v), v));
#else
  for (int i = 0; i < 4; ++i)
    y[i] = x[i] * x[i] + x[i];
#endif
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_module_invoke(const vmpk_call_t *call) {
  static vmpk_status_t (*const functions[])(const vmpk_call_t *) = {run_main, run_repeat, run_pair, run_answer,
                                                                    run_madd};
  return vmpk_abi_function(call) < 5 ? functions[vmpk_abi_function(call)](call) : VMPK_STATUS_NOT_FOUND;
}

vmpk_status_t vmpk_module_measure(uint32_t function, const int64_t *dims, vmpk_measured_t *out) {
  if (function > 1 || out->size < sizeof(vmpk_measured_t))
    return VMPK_STATUS_INVALID_ARGUMENT;
  int64_t n = vmpk_abi_dim(dims, 0);
  vmpk_abi_set_arena_size(out, function == 0 ? 128 + n * 8 : n * 4);
  if (function == 1) {
    vmpk_abi_set_output_dim(out, 0, 2 * n);
    return VMPK_STATUS_OK;
  }
  vmpk_abi_set_output_dim(out, 0, n);
  vmpk_abi_set_output_dim(out, 1, 2);
  vmpk_abi_set_output_dim(out, 2, n);
  vmpk_abi_set_output_dim(out, 3, n);
  return VMPK_STATUS_OK;
}

/* ---- The layout, as C sees it ----------------------------------------------------------------------------------- */

/* "name.field=number;" for every field that the JavaScript host writes or reads. */
typedef struct field {
  const char *name;
  uint32_t value;
} field_t;

#define SIZE(name, type) {#name ".sizeof", sizeof(type)},
#define AT(name, type, key, member) {#name "." #key, offsetof(type, member)},
static const field_t fields[] = {
    {"abiVersion", VMPK_ABI_VERSION},
    {"alignment", VMPK_ALIGNMENT},
    {"maxRank", VMPK_MAX_RANK},
    SIZE(buffer, vmpk_buffer_t) AT(buffer, vmpk_buffer_t, data, data) AT(buffer, vmpk_buffer_t, size, size)
        SIZE(host, vmpk_host_t) AT(host, vmpk_host_t, size, size) AT(host, vmpk_host_t, abiVersion, abi_version)
            SIZE(call, vmpk_call_t) AT(call, vmpk_call_t, size, size) AT(call, vmpk_call_t, function, function) AT(
                call, vmpk_call_t, host, host) AT(call, vmpk_call_t, arena, arena)
                AT(call, vmpk_call_t, arenaSize, arena_size) AT(call, vmpk_call_t, weights, weights) AT(
                    call, vmpk_call_t, imports, imports) AT(call, vmpk_call_t, dims, dims)
                    AT(call, vmpk_call_t, inputs, inputs) AT(call, vmpk_call_t, outputs, outputs) SIZE(
                        measured, vmpk_measured_t) AT(measured, vmpk_measured_t, size, size)
                        AT(measured, vmpk_measured_t, arenaSize,
                           arena_size) AT(measured, vmpk_measured_t, outputDims,
                                          output_dims) SIZE(entry, vmpk_entry_t) AT(entry, vmpk_entry_t, size, size)
                            AT(entry, vmpk_entry_t, abiVersion, abi_version) AT(entry, vmpk_entry_t, table, table)
                                AT(entry, vmpk_entry_t, tableSize, table_size) AT(entry, vmpk_entry_t, weights, weights)
                                    AT(entry, vmpk_entry_t, measure, measure) AT(entry, vmpk_entry_t, invoke, invoke)
#define H(key, member) AT(header, vmpk_table_header_t, key, member)
                                        SIZE(header, vmpk_table_header_t) H(magic, magic) H(size, size) H(abiVersion,
                                                                                                          abi_version)
                                            H(tableSize, table_size) H(digest, digest) H(weightsDigest, weights_digest)
                                                H(weightsSize, weights_size) H(stackSize, stack_size) H(name, name) H(
                                                    functions, functions) H(dispatches, dispatches) H(imports, imports)
                                                    H(functionSize, function_size) H(dispatchSize, dispatch_size)
                                                        H(importSize, import_size) H(tensorSize,
                                                                                     tensor_size) H(dimSize, dim_size)
#define F(key, member) AT(tableFunction, vmpk_table_function_t, key, member)
                                                            SIZE(tableFunction, vmpk_table_function_t) F(name, name)
                                                                F(dims, dims) F(inputs, inputs) F(outputs, outputs) F(
                                                                    arenaSize, arena_size)
#define D(key) AT(tableDim, vmpk_table_dim_t, key, key)
                                                                    SIZE(tableDim,
                                                                         vmpk_table_dim_t) D(name) D(minimum) D(maximum)
#define T(key) AT(tableTensor, vmpk_table_tensor_t, key, key)
                                                                        SIZE(tableTensor, vmpk_table_tensor_t) T(
                                                                            name) T(dims) T(dtype)
#define P(key) AT(tableDispatch, vmpk_table_dispatch_t, key, key)
                                                                            SIZE(tableDispatch, vmpk_table_dispatch_t)
                                                                                P(name) P(location) P(flops) P(bytes)
#define I(key) AT(tableImport, vmpk_table_import_t, key, key)
                                                                                    SIZE(tableImport,
                                                                                         vmpk_table_import_t) I(name)
                                                                                        I(version) I(required)};

__attribute__((export_name("layout"))) const field_t *layout(void) { return fields; }
__attribute__((export_name("layout_count"))) uint32_t layout_count(void) { return sizeof fields / sizeof fields[0]; }
