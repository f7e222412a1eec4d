#include "shapes.h"
#include "error.h"

/* ---- Inputs ----------------------------------------------------------------------------------------------------- */

static vmpk_status_t check_bounds(vmpk_text_t tensor, uint32_t axis, const vmpk_table_t *table,
                                  const vmpk_table_dim_t *dim, int64_t size, vmpk_error_t *error) {
  vmpk_text_t name = vmpk_table_text(table, dim->name);
  if (size < dim->minimum)
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_RANGE,
                     "input '%.*s': dim %u ('%.*s') is %lld when it should be at least %lld", VMPK_TEXT_ARGS(tensor),
                     axis, VMPK_TEXT_ARGS(name), (long long)size, (long long)dim->minimum);
  if (size > dim->maximum)
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_RANGE,
                     "input '%.*s': dim %u ('%.*s') is %lld when it should be at most %lld", VMPK_TEXT_ARGS(tensor),
                     axis, VMPK_TEXT_ARGS(name), (long long)size, (long long)dim->maximum);
  return VMPK_STATUS_OK;
}

static vmpk_status_t bind_dim(const vmpk_table_t *table, const vmpk_table_function_t *function, vmpk_text_t tensor,
                              uint32_t axis, int64_t entry, int64_t size, int64_t *dims, vmpk_error_t *error) {
  if (entry >= 0)
    return entry == size
               ? VMPK_STATUS_OK
               : vmpk_fail(error, VMPK_STATUS_SHAPE_MISMATCH, "input '%.*s': dim %u is %lld when it should be %lld",
                           VMPK_TEXT_ARGS(tensor), axis, (long long)size, (long long)entry);
  uint32_t symbol = (uint32_t)(-(entry + 1));
  const vmpk_table_dim_t *dim = vmpk_table_dim_at(table, function, symbol);
  if (dims[symbol] >= 0 && dims[symbol] != size) {
    vmpk_text_t name = vmpk_table_text(table, dim->name);
    return vmpk_fail(error, VMPK_STATUS_SHAPE_MISMATCH,
                     "input '%.*s': dim %u ('%.*s') is %lld when it should be %lld, as it was before",
                     VMPK_TEXT_ARGS(tensor), axis, VMPK_TEXT_ARGS(name), (long long)size, (long long)dims[symbol]);
  }
  dims[symbol] = size;
  return check_bounds(tensor, axis, table, dim, size, error);
}

static vmpk_status_t bind_input(const vmpk_table_t *table, const vmpk_table_function_t *function,
                                const vmpk_table_tensor_t *expected, const vmpk_tensor_t *input, int64_t *dims,
                                vmpk_error_t *error) {
  vmpk_text_t name = vmpk_table_text(table, expected->name);
  if (input->dtype != VMPK_DTYPE_INVALID && input->dtype != expected->dtype)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "input '%.*s': dtype is %s when it should be %s",
                     VMPK_TEXT_ARGS(name), vmpk_dtype_text(input->dtype), vmpk_dtype_text(expected->dtype));
  if (input->rank != expected->dims.count)
    return vmpk_fail(error, VMPK_STATUS_SHAPE_MISMATCH, "input '%.*s': rank is %u when it should be %u",
                     VMPK_TEXT_ARGS(name), input->rank, expected->dims.count);
  const int64_t *shape = vmpk_table_shape(table, expected);
  for (uint32_t axis = 0; axis < input->rank; ++axis) {
    vmpk_status_t status = bind_dim(table, function, name, axis, shape[axis], input->dims[axis], dims, error);
    if (status != VMPK_STATUS_OK)
      return status;
  }
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_shapes_bind(const vmpk_table_t *table, const vmpk_table_function_t *function,
                               const vmpk_tensor_t *inputs, int64_t *dims, vmpk_error_t *error) {
  for (uint32_t i = 0; i < function->dims.count; ++i)
    dims[i] = -1; /* no value yet; a bound minimum is at least zero */
  for (uint32_t i = 0; i < function->inputs.count; ++i) {
    const vmpk_table_tensor_t *expected = vmpk_table_tensor_at(table, function->inputs, i);
    vmpk_status_t status = bind_input(table, function, expected, &inputs[i], dims, error);
    if (status != VMPK_STATUS_OK)
      return status;
  }
  return VMPK_STATUS_OK;
}

/* ---- Outputs ---------------------------------------------------------------------------------------------------- */

int vmpk_shapes_need_measure(const vmpk_table_t *table, const vmpk_table_function_t *function) {
  for (uint32_t i = 0; i < function->outputs.count; ++i) {
    const vmpk_table_tensor_t *tensor = vmpk_table_tensor_at(table, function->outputs, i);
    for (uint32_t axis = 0; axis < tensor->dims.count; ++axis)
      if (vmpk_table_shape(table, tensor)[axis] == VMPK_DIM_COMPUTED)
        return 1;
  }
  return 0;
}

vmpk_status_t vmpk_shapes_resolve(const vmpk_table_t *table, const vmpk_table_function_t *function, const int64_t *dims,
                                  const int64_t *computed, vmpk_tensor_t *outputs, vmpk_error_t *error) {
  uint32_t flat = 0;
  for (uint32_t i = 0; i < function->outputs.count; ++i) {
    const vmpk_table_tensor_t *tensor = vmpk_table_tensor_at(table, function->outputs, i);
    const int64_t *shape = vmpk_table_shape(table, tensor);
    outputs[i].dtype = tensor->dtype;
    outputs[i].rank = tensor->dims.count;
    for (uint32_t axis = 0; axis < tensor->dims.count; ++axis, ++flat) {
      int64_t entry = shape[axis];
      int64_t size = entry == VMPK_DIM_COMPUTED ? computed[flat] : entry < 0 ? dims[-(entry + 1)] : entry;
      if (size < 0) {
        vmpk_text_t name = vmpk_table_text(table, tensor->name);
        return vmpk_fail(error, VMPK_STATUS_OUT_OF_RANGE, "output '%.*s': dim %u comes out as %lld for these inputs",
                         VMPK_TEXT_ARGS(name), axis, (long long)size);
      }
      outputs[i].dims[axis] = size;
    }
  }
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_shapes_bytes(const vmpk_table_t *table, const vmpk_table_tensor_t *tensor, const char *kind,
                                const int64_t *dims, uint64_t *bytes, vmpk_error_t *error) {
  uint64_t product = vmpk_dtype_size(tensor->dtype);
  int overflow = 0;
  for (uint32_t axis = 0; axis < tensor->dims.count; ++axis)
    overflow |= __builtin_mul_overflow(product, (uint64_t)dims[axis], &product);
  if (overflow || product > INT64_MAX) {
    vmpk_text_t name = vmpk_table_text(table, tensor->name);
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_RANGE, "%s '%.*s': its dims are too large to count bytes with", kind,
                     VMPK_TEXT_ARGS(name));
  }
  *bytes = product;
  return VMPK_STATUS_OK;
}
