/* What a module is inside, and how loaders make one. */
#ifndef VMPK_SRC_MODULE_H
#define VMPK_SRC_MODULE_H

#include "allocator.h"
#include "table.h"

#include <stdatomic.h>

/** Where a module's code came from: a loader's own data, and what to do with it when the module is gone. */
typedef struct vmpk_code {
  void *data;                                                    /**< NULL for code that is linked in */
  void (*unload)(const vmpk_allocator_t *allocator, void *data); /**< may be NULL */
  /** Loads the same thing again as it is now; NULL when that has no meaning. */
  vmpk_status_t (*reload)(const vmpk_allocator_t *allocator, const void *data, vmpk_module_t **out,
                          vmpk_error_t *error);
} vmpk_code_t;

struct vmpk_module {
  atomic_uint references;
  vmpk_allocator_t allocator;
  vmpk_code_t code;
  vmpk_entry_t entry;
  vmpk_table_t table;
  const uint8_t *weights; /**< embedded or given; NULL when missing or none */
  void *owned_weights;    /**< weights that a loader had to copy; released with the module */
};

/** As vmpk_module_create, for code that is unloaded with the module. On failure the code stays the caller's. */
vmpk_status_t vmpk_module_create_from(vmpk_query_fn query, const vmpk_code_t *code, const vmpk_allocator_t *allocator,
                                      vmpk_module_t **out, vmpk_error_t *error);

#endif /* VMPK_SRC_MODULE_H */
