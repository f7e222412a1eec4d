#include "table.h"
#include "error.h"

#include <string.h>

/* ---- Accessors -------------------------------------------------------------------------------------------------- */

static const void *element(const vmpk_table_t *table, vmpk_span_t span, uint32_t stride, uint32_t index) {
  return table->bytes + span.offset + (uint64_t)index * stride;
}

const vmpk_table_function_t *vmpk_table_function_at(const vmpk_table_t *table, uint32_t index) {
  return element(table, table->header->functions, table->header->function_size, index);
}
const vmpk_table_dispatch_t *vmpk_table_dispatch_at(const vmpk_table_t *table, uint32_t index) {
  return element(table, table->header->dispatches, table->header->dispatch_size, index);
}
const vmpk_table_import_t *vmpk_table_import_at(const vmpk_table_t *table, uint32_t index) {
  return element(table, table->header->imports, table->header->import_size, index);
}
const vmpk_table_tensor_t *vmpk_table_tensor_at(const vmpk_table_t *table, vmpk_span_t tensors, uint32_t index) {
  return element(table, tensors, table->header->tensor_size, index);
}
const vmpk_table_dim_t *vmpk_table_dim_at(const vmpk_table_t *table, const vmpk_table_function_t *function,
                                          uint32_t index) {
  return element(table, function->dims, table->header->dim_size, index);
}
const int64_t *vmpk_table_shape(const vmpk_table_t *table, const vmpk_table_tensor_t *tensor) {
  return (const int64_t *)(const void *)(table->bytes + tensor->dims.offset);
}
vmpk_text_t vmpk_table_text(const vmpk_table_t *table, vmpk_span_t span) {
  vmpk_text_t text = {(const char *)table->bytes + span.offset, span.count};
  return text;
}

/* ---- Validation ------------------------------------------------------------------------------------------------- */

/* What is being checked, for messages: "function 2 input 1". */
typedef struct place {
  const char *kind;
  uint32_t outer;
  const char *inner_kind; /* "" at the outer level */
  uint32_t inner;
} place_t;

static vmpk_status_t corrupt(const place_t *at, const char *what, uint64_t value, vmpk_error_t *error) {
  if (at->inner_kind[0])
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: %s %u, %s %u: %s is %llu", at->kind, at->outer,
                     at->inner_kind, at->inner, what, (unsigned long long)value);
  return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: %s %u: %s is %llu", at->kind, at->outer, what,
                   (unsigned long long)value);
}

static int span_fits(const vmpk_table_t *table, vmpk_span_t span, uint32_t stride) {
  /* 32-bit numbers: neither the product nor the sum can overflow 64 bits */
  return span.offset + (uint64_t)span.count * stride <= table->header->table_size;
}

static vmpk_status_t check_text(const vmpk_table_t *table, vmpk_span_t span, const place_t *at, vmpk_error_t *error) {
  return span_fits(table, span, 1) ? VMPK_STATUS_OK : corrupt(at, "the end of a text", span.offset, error);
}

static vmpk_status_t check_array(const vmpk_table_t *table, vmpk_span_t span, uint32_t stride, const place_t *at,
                                 vmpk_error_t *error) {
  if (span.offset % 8 != 0)
    return corrupt(at, "the unaligned offset of an array", span.offset, error);
  return span_fits(table, span, stride) ? VMPK_STATUS_OK
                                        : corrupt(at, "the count of an array that does not fit", span.count, error);
}

/* A dim entry; *elements is multiplied by it, or by one when it is not static. */
static vmpk_status_t check_dim(int64_t dim, uint32_t symbols, int may_compute, const place_t *at, uint64_t *elements,
                               vmpk_error_t *error) {
  if (dim == VMPK_DIM_COMPUTED)
    return may_compute ? VMPK_STATUS_OK : corrupt(at, "a computed dim, in an input,", 0, error);
  if (dim < 0)
    return (uint64_t)(-(dim + 1)) < symbols ? VMPK_STATUS_OK
                                            : corrupt(at, "a symbolic dim's ordinal", (uint64_t)(-(dim + 1)), error);
  if (__builtin_mul_overflow(*elements, (uint64_t)dim, elements) || *elements > INT64_MAX)
    return corrupt(at, "a dim too large to count elements with", (uint64_t)dim, error);
  return VMPK_STATUS_OK;
}

static vmpk_status_t check_tensor(const vmpk_table_t *table, const vmpk_table_tensor_t *tensor, uint32_t symbols,
                                  int is_output, const place_t *at, vmpk_error_t *error) {
  vmpk_status_t status = check_text(table, tensor->name, at, error);
  if (status == VMPK_STATUS_OK)
    status = check_array(table, tensor->dims, sizeof(int64_t), at, error);
  if (status != VMPK_STATUS_OK)
    return status;
  if (!vmpk_dtype_size(tensor->dtype))
    return corrupt(at, "dtype", tensor->dtype, error);
  if (tensor->dims.count > VMPK_MAX_RANK)
    return corrupt(at, "rank", tensor->dims.count, error);
  const int64_t *shape = vmpk_table_shape(table, tensor);
  uint64_t bytes = vmpk_dtype_size(tensor->dtype);
  for (uint32_t i = 0; i < tensor->dims.count && status == VMPK_STATUS_OK; ++i)
    status = check_dim(shape[i], symbols, is_output, at, &bytes, error);
  return status;
}

static vmpk_status_t check_tensors(const vmpk_table_t *table, vmpk_span_t tensors, uint32_t symbols, uint32_t function,
                                   const char *kind, vmpk_error_t *error) {
  place_t at = {"function", function, "", 0};
  vmpk_status_t status = check_array(table, tensors, table->header->tensor_size, &at, error);
  at.inner_kind = kind;
  for (; at.inner < tensors.count && status == VMPK_STATUS_OK; ++at.inner)
    status = check_tensor(table, vmpk_table_tensor_at(table, tensors, at.inner), symbols, kind[0] == 'o', &at, error);
  return status;
}

static vmpk_status_t check_dims(const vmpk_table_t *table, const vmpk_table_function_t *function, uint32_t ordinal,
                                vmpk_error_t *error) {
  place_t at = {"function", ordinal, "", 0};
  vmpk_status_t status = check_array(table, function->dims, table->header->dim_size, &at, error);
  at.inner_kind = "dim";
  for (; at.inner < function->dims.count && status == VMPK_STATUS_OK; ++at.inner) {
    const vmpk_table_dim_t *dim = vmpk_table_dim_at(table, function, at.inner);
    status = check_text(table, dim->name, &at, error);
    if (status == VMPK_STATUS_OK && (dim->minimum < 0 || dim->maximum < dim->minimum))
      status = corrupt(&at, "the maximum, which is below the minimum or zero,", (uint64_t)dim->maximum, error);
  }
  return status;
}

/* 1 when some input has the k-th symbolic dim, and with it a value. */
static int is_bound(const vmpk_table_t *table, const vmpk_table_function_t *function, uint32_t k) {
  for (uint32_t i = 0; i < function->inputs.count; ++i) {
    const vmpk_table_tensor_t *input = vmpk_table_tensor_at(table, function->inputs, i);
    for (uint32_t j = 0; j < input->dims.count; ++j)
      if (vmpk_table_shape(table, input)[j] == -(1 + (int64_t)k))
        return 1;
  }
  return 0;
}

static vmpk_status_t check_function(const vmpk_table_t *table, uint32_t ordinal, vmpk_error_t *error) {
  const vmpk_table_function_t *function = vmpk_table_function_at(table, ordinal);
  place_t at = {"function", ordinal, "", 0};
  vmpk_status_t status = check_text(table, function->name, &at, error);
  if (status == VMPK_STATUS_OK)
    status = check_dims(table, function, ordinal, error);
  if (status == VMPK_STATUS_OK)
    status = check_tensors(table, function->inputs, function->dims.count, ordinal, "input", error);
  if (status == VMPK_STATUS_OK)
    status = check_tensors(table, function->outputs, function->dims.count, ordinal, "output", error);
  for (uint32_t k = 0; k < function->dims.count && status == VMPK_STATUS_OK; ++k)
    if (!is_bound(table, function, k))
      status = corrupt(&at, "a symbolic dim that no input has", k, error);
  return status;
}

static vmpk_status_t check_functions(const vmpk_table_t *table, vmpk_error_t *error) {
  place_t at = {"functions", 0, "", 0};
  vmpk_status_t status = check_array(table, table->header->functions, table->header->function_size, &at, error);
  for (uint32_t i = 0; i < table->header->functions.count && status == VMPK_STATUS_OK; ++i)
    status = check_function(table, i, error);
  return status;
}

static vmpk_status_t check_dispatches(const vmpk_table_t *table, vmpk_error_t *error) {
  place_t at = {"dispatch", 0, "", 0};
  vmpk_status_t status = check_array(table, table->header->dispatches, table->header->dispatch_size, &at, error);
  for (; at.outer < table->header->dispatches.count && status == VMPK_STATUS_OK; ++at.outer) {
    const vmpk_table_dispatch_t *dispatch = vmpk_table_dispatch_at(table, at.outer);
    status = check_text(table, dispatch->name, &at, error);
    if (status == VMPK_STATUS_OK)
      status = check_text(table, dispatch->location, &at, error);
  }
  return status;
}

static vmpk_status_t check_imports(const vmpk_table_t *table, vmpk_error_t *error) {
  place_t at = {"import", 0, "", 0};
  vmpk_status_t status = check_array(table, table->header->imports, table->header->import_size, &at, error);
  for (; at.outer < table->header->imports.count && status == VMPK_STATUS_OK; ++at.outer)
    status = check_text(table, vmpk_table_import_at(table, at.outer)->name, &at, error);
  return status;
}

/* Strides may be larger than ours in tables of later versions, never smaller. */
static vmpk_status_t check_strides(const vmpk_table_header_t *header, vmpk_error_t *error) {
  const struct {
    const char *name;
    uint32_t actual;
    size_t least;
  } rows[] = {{"function_size", header->function_size, sizeof(vmpk_table_function_t)},
              {"dispatch_size", header->dispatch_size, sizeof(vmpk_table_dispatch_t)},
              {"import_size", header->import_size, sizeof(vmpk_table_import_t)},
              {"tensor_size", header->tensor_size, sizeof(vmpk_table_tensor_t)},
              {"dim_size", header->dim_size, sizeof(vmpk_table_dim_t)}};
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i)
    if (rows[i].actual < rows[i].least || rows[i].actual % 8 != 0)
      return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: %s is %u when it should be %u", rows[i].name,
                       rows[i].actual, (unsigned)rows[i].least);
  return VMPK_STATUS_OK;
}

static vmpk_status_t check_header(const uint8_t *bytes, uint64_t size, vmpk_error_t *error) {
  if (!bytes || (uintptr_t)bytes % 8 != 0)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: its address is missing or not a multiple of 8");
  if (size < sizeof(vmpk_table_header_t))
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: size is %llu when it should be at least %u",
                     (unsigned long long)size, (unsigned)sizeof(vmpk_table_header_t));
  const vmpk_table_header_t *header = (const void *)bytes;
  if (memcmp(header->magic, VMPK_TABLE_MAGIC, sizeof header->magic) != 0)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: it does not begin with " VMPK_TABLE_MAGIC);
  if (header->abi_version < VMPK_ABI_VERSION)
    return vmpk_fail(error, VMPK_STATUS_VERSION_MISMATCH,
                     "the module's table has abi version %u, this runtime reads %u and later: package the model again",
                     header->abi_version, VMPK_ABI_VERSION);
  if (header->size < sizeof *header || header->size > size)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: header size is %u when it should be %u", header->size,
                     (unsigned)sizeof *header);
  if (header->table_size != size)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: size is %llu when it should be %llu",
                     (unsigned long long)size, (unsigned long long)header->table_size);
  return check_strides(header, error);
}

vmpk_status_t vmpk_table_open(const uint8_t *bytes, uint64_t size, vmpk_table_t *out, vmpk_error_t *error) {
  memset(out, 0, sizeof *out);
  vmpk_status_t status = check_header(bytes, size, error);
  if (status != VMPK_STATUS_OK)
    return status;
  vmpk_table_t table = {bytes, (const void *)bytes};
  place_t at = {"header", 0, "", 0};
  status = check_text(&table, table.header->name, &at, error);
  if (status == VMPK_STATUS_OK)
    status = check_functions(&table, error);
  if (status == VMPK_STATUS_OK)
    status = check_dispatches(&table, error);
  if (status == VMPK_STATUS_OK)
    status = check_imports(&table, error);
  if (status == VMPK_STATUS_OK)
    *out = table;
  return status;
}
