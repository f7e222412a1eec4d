#include "error.h"
#include "module.h"
#include "shapes.h"

#include <string.h>

struct vmpk_instance {
  vmpk_allocator_t allocator;
  vmpk_module_t *module;
  const vmpk_host_t *host;
  uint8_t *arena;
  uint64_t arena_size;
  /* room for the largest function's call, in the same block as the instance */
  vmpk_operand_t *imports;
  int64_t *dims, *output_dims;
  vmpk_buffer_t *inputs, *outputs;
};

/* ---- Making one ------------------------------------------------------------------------------------------------- */

typedef struct room {
  uint64_t dims, output_dims, inputs, outputs, imports;
} room_t;

static uint64_t larger(uint64_t a, uint64_t b) { return a > b ? a : b; }

static room_t room_of(const vmpk_table_t *table) {
  room_t room = {0, 0, 0, 0, table->header->imports.count};
  for (uint32_t i = 0; i < table->header->functions.count; ++i) {
    const vmpk_table_function_t *function = vmpk_table_function_at(table, i);
    uint64_t output_dims = 0;
    for (uint32_t j = 0; j < function->outputs.count; ++j)
      output_dims += vmpk_table_tensor_at(table, function->outputs, j)->dims.count;
    room.dims = larger(room.dims, function->dims.count);
    room.output_dims = larger(room.output_dims, output_dims);
    room.inputs = larger(room.inputs, function->inputs.count);
    room.outputs = larger(room.outputs, function->outputs.count);
  }
  return room;
}

/* One block: the instance and its arrays, all of whose elements are multiples of 8 bytes. */
static vmpk_instance_t *allocate_instance(const vmpk_allocator_t *allocator, room_t room) {
  const uint64_t head = (sizeof(vmpk_instance_t) + 7) / 8 * 8;
  uint64_t size = head + (room.dims + room.output_dims) * sizeof(int64_t) + room.imports * sizeof(vmpk_operand_t) +
                  (room.inputs + room.outputs) * sizeof(vmpk_buffer_t);
  uint8_t *memory = vmpk_allocator_zeroed(allocator, size);
  if (!memory)
    return NULL;
  vmpk_instance_t *instance = (void *)memory;
  instance->dims = (void *)(memory + head);
  instance->output_dims = instance->dims + room.dims;
  instance->imports = (void *)(instance->output_dims + room.output_dims);
  instance->inputs = (void *)(instance->imports + room.imports);
  instance->outputs = instance->inputs + room.inputs;
  return instance;
}

static vmpk_status_t resolve_imports(vmpk_instance_t *instance, vmpk_error_t *error) {
  const vmpk_table_t *table = &instance->module->table;
  const vmpk_host_t *host = instance->host;
  for (uint32_t i = 0; i < table->header->imports.count; ++i) {
    const vmpk_table_import_t *import = vmpk_table_import_at(table, i);
    vmpk_text_t name = vmpk_table_text(table, import->name);
    instance->imports[i].pointer = host->resolve ? host->resolve(host, name.data, name.size, import->version) : NULL;
    if (!instance->imports[i].pointer && import->required)
      return vmpk_fail(error, VMPK_STATUS_MISSING_IMPORT, "the host does not have '%.*s' version %u",
                       VMPK_TEXT_ARGS(name), import->version);
  }
  return VMPK_STATUS_OK;
}

static vmpk_status_t check_creation(const vmpk_module_t *module, const vmpk_host_t *host, vmpk_error_t *error) {
  if (!module)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "the module is NULL");
  if (host->size < sizeof(vmpk_host_t) || host->abi_version < VMPK_ABI_VERSION)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT,
                     "the host has %u bytes and abi version %u when it should have %u and %u", host->size,
                     host->abi_version, (unsigned)sizeof(vmpk_host_t), VMPK_ABI_VERSION);
  const vmpk_table_header_t *header = module->table.header;
  vmpk_text_t name = vmpk_table_text(&module->table, header->name);
  if (header->weights_size && !module->weights)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT,
                     "module '%.*s' needs its external weights, %llu bytes: give them by vmpk_module_set_weights first",
                     VMPK_TEXT_ARGS(name), (unsigned long long)header->weights_size);
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_instance_create(vmpk_module_t *module, const vmpk_host_t *host, const vmpk_allocator_t *allocator,
                                   vmpk_instance_t **out, vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "no place for the instance: out is NULL");
  *out = NULL;
  host = host ? host : vmpk_serial_host();
  vmpk_status_t status = check_creation(module, host, error);
  if (status != VMPK_STATUS_OK)
    return status;
  vmpk_allocator_t memory = vmpk_allocator_or_default(allocator);
  vmpk_instance_t *instance = allocate_instance(&memory, room_of(&module->table));
  if (!instance)
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_MEMORY, "no memory for an instance");
  instance->allocator = memory;
  instance->host = host;
  instance->module = vmpk_module_retain(module);
  status = resolve_imports(instance, error);
  if (status == VMPK_STATUS_OK)
    *out = instance;
  else
    vmpk_instance_destroy(instance);
  return status;
}

void vmpk_instance_destroy(vmpk_instance_t *instance) {
  if (!instance)
    return;
  vmpk_allocator_t allocator = instance->allocator;
  vmpk_module_t *module = instance->module;
  vmpk_allocator_give(&allocator, instance->arena);
  vmpk_allocator_give(&allocator, instance);
  vmpk_module_release(module);
}

uint64_t vmpk_instance_arena_size(const vmpk_instance_t *instance) { return instance->arena_size; }

/* ---- Shapes ----------------------------------------------------------------------------------------------------- */

static vmpk_status_t check_counts(const vmpk_instance_t *instance, uint32_t function, const vmpk_tensor_t *inputs,
                                  uint32_t input_count, const vmpk_tensor_t *outputs, uint32_t output_count,
                                  vmpk_error_t *error) {
  if (!instance || (!inputs && input_count) || (!outputs && output_count))
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "instance, inputs or outputs are NULL");
  const vmpk_table_t *table = &instance->module->table;
  if (function >= table->header->functions.count)
    return vmpk_fail(error, VMPK_STATUS_NOT_FOUND, "function %u of %u does not exist", function,
                     table->header->functions.count);
  const vmpk_table_function_t *row = vmpk_table_function_at(table, function);
  vmpk_text_t name = vmpk_table_text(table, row->name);
  if (input_count != row->inputs.count)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "function '%.*s': input count is %u when it should be %u",
                     VMPK_TEXT_ARGS(name), input_count, row->inputs.count);
  if (output_count != row->outputs.count)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "function '%.*s': output count is %u when it should be %u",
                     VMPK_TEXT_ARGS(name), output_count, row->outputs.count);
  return VMPK_STATUS_OK;
}

/* Binds instance->dims, sets the outputs' shapes and the arena's size. */
static vmpk_status_t plan(vmpk_instance_t *instance, uint32_t function, const vmpk_tensor_t *inputs,
                          vmpk_tensor_t *outputs, uint64_t *arena_size, vmpk_error_t *error) {
  const vmpk_table_t *table = &instance->module->table;
  const vmpk_table_function_t *row = vmpk_table_function_at(table, function);
  vmpk_status_t status = vmpk_shapes_bind(table, row, inputs, instance->dims, error);
  if (status != VMPK_STATUS_OK)
    return status;
  *arena_size = row->arena_size;
  if (row->arena_size == UINT64_MAX || vmpk_shapes_need_measure(table, row)) {
    vmpk_measured_t measured;
    memset(&measured, 0, sizeof measured);
    measured.size = sizeof measured;
    measured.output_dims = instance->output_dims;
    status = instance->module->entry.measure(function, instance->dims, &measured);
    if (status != VMPK_STATUS_OK) {
      vmpk_text_t name = vmpk_table_text(table, row->name);
      return vmpk_fail(error, status, "function '%.*s' cannot be measured for these inputs: %s", VMPK_TEXT_ARGS(name),
                       vmpk_status_text(status));
    }
    if (row->arena_size == UINT64_MAX)
      *arena_size = measured.arena_size;
  }
  return vmpk_shapes_resolve(table, row, instance->dims, instance->output_dims, outputs, error);
}

vmpk_status_t vmpk_instance_measure(vmpk_instance_t *instance, uint32_t function, const vmpk_tensor_t *inputs,
                                    uint32_t input_count, vmpk_tensor_t *outputs, uint32_t output_count,
                                    uint64_t *arena_size, vmpk_error_t *error) {
  vmpk_error_clear(error);
  uint64_t arena = 0;
  if (arena_size)
    *arena_size = 0;
  vmpk_status_t status = check_counts(instance, function, inputs, input_count, outputs, output_count, error);
  if (status == VMPK_STATUS_OK)
    status = plan(instance, function, inputs, outputs, &arena, error);
  if (status != VMPK_STATUS_OK)
    return status;
  const vmpk_table_t *table = &instance->module->table;
  vmpk_span_t tensors = vmpk_table_function_at(table, function)->outputs;
  for (uint32_t i = 0; i < output_count && status == VMPK_STATUS_OK; ++i)
    status = vmpk_shapes_bytes(table, vmpk_table_tensor_at(table, tensors, i), "output", outputs[i].dims,
                               &outputs[i].size, error);
  if (arena_size)
    *arena_size = arena;
  return status;
}

/* ---- Running ---------------------------------------------------------------------------------------------------- */

static vmpk_status_t grow_arena(vmpk_instance_t *instance, uint64_t size, vmpk_error_t *error) {
  if (size <= instance->arena_size)
    return VMPK_STATUS_OK;
  vmpk_allocator_give(&instance->allocator, instance->arena);
  instance->arena_size = 0;
  instance->arena = vmpk_allocator_take(&instance->allocator, size);
  if (!instance->arena)
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_MEMORY, "no memory for the arena: %llu bytes", (unsigned long long)size);
  instance->arena_size = size;
  return VMPK_STATUS_OK;
}

/* Turns one of the caller's tensors into a buffer of the call. An output may have more room than it needs. */
static vmpk_status_t bind_buffer(const vmpk_table_t *table, const vmpk_table_tensor_t *expected, const char *kind,
                                 const vmpk_tensor_t *tensor, int may_be_larger, vmpk_buffer_t *buffer,
                                 vmpk_error_t *error) {
  uint64_t bytes;
  vmpk_status_t status = vmpk_shapes_bytes(table, expected, kind, tensor->dims, &bytes, error);
  if (status != VMPK_STATUS_OK)
    return status;
  vmpk_text_t name = vmpk_table_text(table, expected->name);
  if (tensor->size != bytes && !(may_be_larger && tensor->size > bytes))
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "%s '%.*s': size is %llu bytes when it should be %s%llu",
                     kind, VMPK_TEXT_ARGS(name), (unsigned long long)tensor->size, may_be_larger ? "at least " : "",
                     (unsigned long long)bytes);
  if (!tensor->data && bytes)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "%s '%.*s': data is NULL", kind, VMPK_TEXT_ARGS(name));
  if ((uintptr_t)tensor->data % vmpk_dtype_size(expected->dtype) != 0)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "%s '%.*s': data is at %p when it should be aligned to %u",
                     kind, VMPK_TEXT_ARGS(name), tensor->data, (unsigned)vmpk_dtype_size(expected->dtype));
  memset(buffer, 0, sizeof *buffer);
  buffer->data = tensor->data;
  buffer->size = bytes;
  return VMPK_STATUS_OK;
}

static int overlap(const vmpk_buffer_t *a, const vmpk_buffer_t *b) {
  uintptr_t first = (uintptr_t)a->data, second = (uintptr_t)b->data;
  return a->size && b->size && first < second + b->size && second < first + a->size;
}

static vmpk_status_t check_overlaps(const vmpk_instance_t *instance, const vmpk_table_function_t *row,
                                    vmpk_error_t *error) {
  const vmpk_table_t *table = &instance->module->table;
  for (uint32_t i = 0; i < row->outputs.count; ++i) {
    vmpk_text_t name = vmpk_table_text(table, vmpk_table_tensor_at(table, row->outputs, i)->name);
    for (uint32_t j = 0; j < row->inputs.count; ++j)
      if (overlap(&instance->outputs[i], &instance->inputs[j]))
        return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "output '%.*s' overlaps input %u in memory",
                         VMPK_TEXT_ARGS(name), j);
    for (uint32_t j = 0; j < i; ++j)
      if (overlap(&instance->outputs[i], &instance->outputs[j]))
        return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "output '%.*s' overlaps output %u in memory",
                         VMPK_TEXT_ARGS(name), j);
  }
  return VMPK_STATUS_OK;
}

static vmpk_status_t bind_buffers(vmpk_instance_t *instance, const vmpk_table_function_t *row,
                                  const vmpk_tensor_t *inputs, const vmpk_tensor_t *outputs, vmpk_error_t *error) {
  const vmpk_table_t *table = &instance->module->table;
  vmpk_status_t status = VMPK_STATUS_OK;
  for (uint32_t i = 0; i < row->inputs.count && status == VMPK_STATUS_OK; ++i)
    status = bind_buffer(table, vmpk_table_tensor_at(table, row->inputs, i), "input", &inputs[i], 0,
                         &instance->inputs[i], error);
  for (uint32_t i = 0; i < row->outputs.count && status == VMPK_STATUS_OK; ++i)
    status = bind_buffer(table, vmpk_table_tensor_at(table, row->outputs, i), "output", &outputs[i], 1,
                         &instance->outputs[i], error);
  return status == VMPK_STATUS_OK ? check_overlaps(instance, row, error) : status;
}

static vmpk_status_t call_module(vmpk_instance_t *instance, uint32_t function, vmpk_error_t *error) {
  vmpk_call_t call;
  memset(&call, 0, sizeof call);
  call.size = sizeof call;
  call.function = function;
  call.host = instance->host;
  call.arena = instance->arena;
  call.arena_size = instance->arena_size;
  call.weights = instance->module->weights;
  call.imports = instance->imports;
  call.dims = instance->dims;
  call.inputs = instance->inputs;
  call.outputs = instance->outputs;
  vmpk_status_t status = instance->module->entry.invoke(&call);
  if (status == VMPK_STATUS_OK)
    return status;
  const vmpk_table_t *table = &instance->module->table;
  vmpk_text_t name = vmpk_table_text(table, vmpk_table_function_at(table, function)->name);
  return vmpk_fail(error, status, "function '%.*s' failed: %s", VMPK_TEXT_ARGS(name), vmpk_status_text(status));
}

vmpk_status_t vmpk_instance_invoke(vmpk_instance_t *instance, uint32_t function, const vmpk_tensor_t *inputs,
                                   uint32_t input_count, vmpk_tensor_t *outputs, uint32_t output_count,
                                   vmpk_error_t *error) {
  vmpk_error_clear(error);
  uint64_t arena_size;
  vmpk_status_t status = check_counts(instance, function, inputs, input_count, outputs, output_count, error);
  if (status == VMPK_STATUS_OK)
    status = plan(instance, function, inputs, outputs, &arena_size, error);
  if (status != VMPK_STATUS_OK)
    return status;
  const vmpk_table_function_t *row = vmpk_table_function_at(&instance->module->table, function);
  status = bind_buffers(instance, row, inputs, outputs, error);
  if (status == VMPK_STATUS_OK)
    status = grow_arena(instance, arena_size, error);
  if (status == VMPK_STATUS_OK)
    status = call_module(instance, function, error);
  return status;
}
