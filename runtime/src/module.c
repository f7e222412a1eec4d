#include "module.h"
#include "error.h"
#include "sha256.h"

#include <string.h>

/* ---- Making one ------------------------------------------------------------------------------------------------- */

static vmpk_status_t ask(vmpk_query_fn query, vmpk_entry_t *entry, vmpk_error_t *error) {
  memset(entry, 0, sizeof *entry);
  entry->size = sizeof *entry;
  vmpk_status_t status = query(VMPK_ABI_VERSION, entry);
  if (status == VMPK_STATUS_VERSION_MISMATCH)
    return vmpk_fail(error, status,
                     "the module serves abi version %u, this runtime has version %u: package the model again or update "
                     "the runtime, whichever is older",
                     entry->abi_version, VMPK_ABI_VERSION);
  if (status != VMPK_STATUS_OK)
    return vmpk_fail(error, status, "the module's query failed: %s", vmpk_status_text(status));
  if (entry->size < sizeof *entry)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "the module's entry has %u bytes when it should have %u", entry->size,
                     (unsigned)sizeof *entry);
  if (!entry->measure || !entry->invoke)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "the module's entry has no measure or invoke function");
  return VMPK_STATUS_OK;
}

static vmpk_status_t check_entry(const vmpk_entry_t *entry, vmpk_table_t *table, vmpk_error_t *error) {
  vmpk_status_t status = vmpk_table_open(entry->table, entry->table_size, table, error);
  if (status != VMPK_STATUS_OK)
    return status;
  if (table->header->abi_version != entry->abi_version)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "module table: abi version is %u when it should be %u",
                     table->header->abi_version, entry->abi_version);
  if ((uintptr_t)entry->weights % VMPK_ALIGNMENT != 0)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "the module's weights are not aligned to %u bytes", VMPK_ALIGNMENT);
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_module_create_from(vmpk_query_fn query, const vmpk_code_t *code, const vmpk_allocator_t *allocator,
                                      vmpk_module_t **out, vmpk_error_t *error) {
  vmpk_entry_t entry;
  vmpk_table_t table;
  vmpk_status_t status = ask(query, &entry, error);
  if (status == VMPK_STATUS_OK)
    status = check_entry(&entry, &table, error);
  if (status != VMPK_STATUS_OK)
    return status;

  vmpk_allocator_t memory = vmpk_allocator_or_default(allocator);
  vmpk_module_t *module = vmpk_allocator_zeroed(&memory, sizeof *module);
  if (!module)
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_MEMORY, "no memory for a module: %u bytes", (unsigned)sizeof *module);
  atomic_init(&module->references, 1);
  module->allocator = memory;
  module->code = *code;
  module->entry = entry;
  module->table = table;
  module->weights = entry.weights;
  *out = module;
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_module_create(vmpk_query_fn query, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                 vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "no place for the module: out is NULL");
  *out = NULL;
  if (!query)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "the query function is NULL");
  vmpk_code_t linked_in = {NULL, NULL, NULL};
  return vmpk_module_create_from(query, &linked_in, allocator, out, error);
}

vmpk_module_t *vmpk_module_retain(vmpk_module_t *module) {
  atomic_fetch_add_explicit(&module->references, 1, memory_order_relaxed);
  return module;
}

void vmpk_module_release(vmpk_module_t *module) {
  if (!module || atomic_fetch_sub_explicit(&module->references, 1, memory_order_acq_rel) != 1)
    return;
  vmpk_allocator_t allocator = module->allocator;
  vmpk_code_t code = module->code;
  vmpk_allocator_give(&allocator, module->owned_weights);
  vmpk_allocator_give(&allocator, module);
  if (code.unload)
    code.unload(&allocator, code.data);
}

/* ---- Weights ---------------------------------------------------------------------------------------------------- */

vmpk_status_t vmpk_module_set_weights(vmpk_module_t *module, const void *weights, uint64_t size, vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!module || (!weights && size))
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "module or weights are NULL");
  if (module->weights)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "the module has its weights already");
  if ((uintptr_t)weights % VMPK_ALIGNMENT != 0)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "weights are at %p when they should be aligned to %u bytes",
                     weights, VMPK_ALIGNMENT);
  const vmpk_table_header_t *header = module->table.header;
  if (size != header->weights_size)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "weights: size is %llu when it should be %llu",
                     (unsigned long long)size, (unsigned long long)header->weights_size);
  if (!vmpk_sha256_matches(weights, size, header->weights_digest))
    return vmpk_fail(error, VMPK_STATUS_CORRUPT,
                     "weights: the sha-256 is not the one in the module: they belong to "
                     "another model, or are damaged");
  module->weights = weights;
  return VMPK_STATUS_OK;
}

/* ---- Looking at one --------------------------------------------------------------------------------------------- */

void vmpk_module_info(const vmpk_module_t *module, vmpk_module_info_t *out) {
  const vmpk_table_header_t *header = module->table.header;
  memset(out, 0, sizeof *out);
  out->name = vmpk_table_text(&module->table, header->name);
  out->abi_version = module->entry.abi_version;
  out->function_count = header->functions.count;
  out->dispatch_count = header->dispatches.count;
  out->import_count = header->imports.count;
  out->digest = header->digest;
  out->weights_digest = header->weights_digest;
  out->weights_size = header->weights_size;
  out->weights_missing = header->weights_size && !module->weights;
  out->stack_size = header->stack_size;
}

/* The row of `function`, or NULL. */
static const vmpk_table_function_t *find(const vmpk_module_t *module, uint32_t function) {
  return function < module->table.header->functions.count ? vmpk_table_function_at(&module->table, function) : NULL;
}

vmpk_status_t vmpk_module_function(const vmpk_module_t *module, uint32_t function, vmpk_function_info_t *out) {
  memset(out, 0, sizeof *out);
  const vmpk_table_function_t *row = find(module, function);
  if (!row)
    return VMPK_STATUS_NOT_FOUND;
  out->name = vmpk_table_text(&module->table, row->name);
  out->dim_count = row->dims.count;
  out->input_count = row->inputs.count;
  out->output_count = row->outputs.count;
  out->arena_size = row->arena_size;
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_module_dim(const vmpk_module_t *module, uint32_t function, uint32_t index, vmpk_dim_info_t *out) {
  memset(out, 0, sizeof *out);
  const vmpk_table_function_t *row = find(module, function);
  if (!row || index >= row->dims.count)
    return VMPK_STATUS_NOT_FOUND;
  const vmpk_table_dim_t *dim = vmpk_table_dim_at(&module->table, row, index);
  out->name = vmpk_table_text(&module->table, dim->name);
  out->minimum = dim->minimum;
  out->maximum = dim->maximum;
  return VMPK_STATUS_OK;
}

static vmpk_status_t describe_tensor(const vmpk_table_t *table, vmpk_span_t tensors, uint32_t index,
                                     vmpk_tensor_info_t *out) {
  if (index >= tensors.count)
    return VMPK_STATUS_NOT_FOUND;
  const vmpk_table_tensor_t *tensor = vmpk_table_tensor_at(table, tensors, index);
  out->name = vmpk_table_text(table, tensor->name);
  out->dtype = tensor->dtype;
  out->rank = tensor->dims.count;
  out->dims = vmpk_table_shape(table, tensor);
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_module_input(const vmpk_module_t *module, uint32_t function, uint32_t index,
                                vmpk_tensor_info_t *out) {
  memset(out, 0, sizeof *out);
  const vmpk_table_function_t *row = find(module, function);
  return row ? describe_tensor(&module->table, row->inputs, index, out) : VMPK_STATUS_NOT_FOUND;
}

vmpk_status_t vmpk_module_output(const vmpk_module_t *module, uint32_t function, uint32_t index,
                                 vmpk_tensor_info_t *out) {
  memset(out, 0, sizeof *out);
  const vmpk_table_function_t *row = find(module, function);
  return row ? describe_tensor(&module->table, row->outputs, index, out) : VMPK_STATUS_NOT_FOUND;
}

vmpk_status_t vmpk_module_dispatch(const vmpk_module_t *module, uint32_t dispatch, vmpk_dispatch_info_t *out) {
  memset(out, 0, sizeof *out);
  if (dispatch >= module->table.header->dispatches.count)
    return VMPK_STATUS_NOT_FOUND;
  const vmpk_table_dispatch_t *row = vmpk_table_dispatch_at(&module->table, dispatch);
  out->name = vmpk_table_text(&module->table, row->name);
  out->location = vmpk_table_text(&module->table, row->location);
  out->flops = row->flops;
  out->bytes = row->bytes;
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_module_find_function(const vmpk_module_t *module, const char *name, uint32_t *function) {
  *function = 0;
  size_t size = strlen(name);
  for (uint32_t i = 0; i < module->table.header->functions.count; ++i) {
    vmpk_text_t text = vmpk_table_text(&module->table, find(module, i)->name);
    if (text.size == size && memcmp(text.data, name, size) == 0) {
      *function = i;
      return VMPK_STATUS_OK;
    }
  }
  return VMPK_STATUS_NOT_FOUND;
}
