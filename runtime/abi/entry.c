/* The module's front door, compiled to bitcode when vmpack is built and linked into every shared module.
 * The translation defines measure and invoke; the last mile defines the table and says where the weights are. */
#define VMPK_MODULE_SIDE 1
#define VMPK_ACCESSOR __attribute__((always_inline))
#define VMPK_SHARED_ACCESSOR __attribute__((noinline))
#include "vmpk/abi.h"

#include <stddef.h>

/* Defined by each last mile: the table's bytes are data, and weights may be embedded or not. */
extern const uint8_t *vmpk_module_table(void);
extern const uint8_t *vmpk_module_weights(void);
/* Defined by the translation. */
extern vmpk_status_t vmpk_module_measure(uint32_t function, const int64_t *dims, vmpk_measured_t *out);
extern vmpk_status_t vmpk_module_invoke(const vmpk_call_t *call);

vmpk_status_t vmpk_query(uint32_t host_abi_version, vmpk_entry_t *out) {
  if (!out || out->size < offsetof(vmpk_entry_t, table))
    return VMPK_STATUS_INVALID_ARGUMENT;
  out->abi_version = VMPK_ABI_VERSION;
  if (host_abi_version != VMPK_ABI_VERSION)
    return VMPK_STATUS_VERSION_MISMATCH;
  if (out->size < sizeof(vmpk_entry_t))
    return VMPK_STATUS_INVALID_ARGUMENT;
  out->size = sizeof(vmpk_entry_t);
  out->table_slot = 0;
  out->table = vmpk_module_table();
  out->table_size = ((const vmpk_table_header_t *)out->table)->table_size;
  out->weights_slot = 0;
  out->weights = vmpk_module_weights();
  out->measure_slot = 0;
  out->measure = vmpk_module_measure;
  out->invoke_slot = 0;
  out->invoke = vmpk_module_invoke;
  return VMPK_STATUS_OK;
}
