/* From the shapes of inputs to the values of symbolic dims, and from those to the shapes of outputs. */
#ifndef VMPK_SRC_SHAPES_H
#define VMPK_SRC_SHAPES_H

#include "table.h"

/** Checks the inputs' dtypes, ranks and dims against the signature and fills `dims` (one value a symbolic dim). */
vmpk_status_t vmpk_shapes_bind(const vmpk_table_t *table, const vmpk_table_function_t *function,
                               const vmpk_tensor_t *inputs, int64_t *dims, vmpk_error_t *error);

/** 1 when an output has a dim that only the module can compute. */
int vmpk_shapes_need_measure(const vmpk_table_t *table, const vmpk_table_function_t *function);

/** Sets dtype, rank and dims of the outputs. `computed`: all output dims as measure answered them; may be NULL when
 * vmpk_shapes_need_measure says 0. */
vmpk_status_t vmpk_shapes_resolve(const vmpk_table_t *table, const vmpk_table_function_t *function, const int64_t *dims,
                                  const int64_t *computed, vmpk_tensor_t *outputs, vmpk_error_t *error);

/** The bytes of a tensor of these dims; OUT_OF_RANGE, naming `kind` and the tensor, when they cannot be counted. */
vmpk_status_t vmpk_shapes_bytes(const vmpk_table_t *table, const vmpk_table_tensor_t *tensor, const char *kind,
                                const int64_t *dims, uint64_t *bytes, vmpk_error_t *error);

#endif /* VMPK_SRC_SHAPES_H */
