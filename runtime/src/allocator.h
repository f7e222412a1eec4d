/* Memory by the caller's allocator or by malloc. */
#ifndef VMPK_SRC_ALLOCATOR_H
#define VMPK_SRC_ALLOCATOR_H

#include "vmpk/vmpk.h"

/** A copy of *allocator, or malloc's when it is NULL. */
vmpk_allocator_t vmpk_allocator_or_default(const vmpk_allocator_t *allocator);

/** `size` zeroed bytes at a multiple of VMPK_ALIGNMENT, or NULL. */
void *vmpk_allocator_zeroed(const vmpk_allocator_t *allocator, uint64_t size);

/** As vmpk_allocator_zeroed, but not zeroed. */
void *vmpk_allocator_take(const vmpk_allocator_t *allocator, uint64_t size);

/** Takes back; NULL is fine. */
void vmpk_allocator_give(const vmpk_allocator_t *allocator, void *memory);

#endif /* VMPK_SRC_ALLOCATOR_H */
