/* The module table, read as untrusted input.
 *
 *   bytes ──► vmpk_table_open: every span, stride, count, dtype and dim is checked once ──► accessors that need no
 * check
 */
#ifndef VMPK_SRC_TABLE_H
#define VMPK_SRC_TABLE_H

#include "vmpk/vmpk.h"

/** A checked table. Borrows its bytes. */
typedef struct vmpk_table {
  const uint8_t *bytes;
  const vmpk_table_header_t *header;
} vmpk_table_t;

/** Checks the `size` bytes of a table. CORRUPT says which field is wrong; VERSION_MISMATCH names both versions when
 * the table is older than this runtime can read. */
vmpk_status_t vmpk_table_open(const uint8_t *bytes, uint64_t size, vmpk_table_t *out, vmpk_error_t *error);

/* Indices must be below the counts. */
const vmpk_table_function_t *vmpk_table_function_at(const vmpk_table_t *table, uint32_t index);
const vmpk_table_dispatch_t *vmpk_table_dispatch_at(const vmpk_table_t *table, uint32_t index);
const vmpk_table_import_t *vmpk_table_import_at(const vmpk_table_t *table, uint32_t index);
const vmpk_table_tensor_t *vmpk_table_tensor_at(const vmpk_table_t *table, vmpk_span_t tensors, uint32_t index);
const vmpk_table_dim_t *vmpk_table_dim_at(const vmpk_table_t *table, const vmpk_table_function_t *function,
                                          uint32_t index);
const int64_t *vmpk_table_shape(const vmpk_table_t *table, const vmpk_table_tensor_t *tensor);
vmpk_text_t vmpk_table_text(const vmpk_table_t *table, vmpk_span_t span);

#endif /* VMPK_SRC_TABLE_H */
