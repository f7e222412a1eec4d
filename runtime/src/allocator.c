#define _GNU_SOURCE
#include "allocator.h"

#include <stdlib.h>
#include <string.h>

/* posix_memalign rather than aligned_alloc: older Android and macOS have no other */
static void *default_allocate(void *context, uint64_t size, uint64_t alignment) {
  (void)context;
  void *memory = NULL;
  if (size > SIZE_MAX || posix_memalign(&memory, (size_t)alignment, size ? (size_t)size : 1) != 0)
    return NULL;
  return memory;
}

static void default_release(void *context, void *memory) {
  (void)context;
  free(memory);
}

vmpk_allocator_t vmpk_allocator_or_default(const vmpk_allocator_t *allocator) {
  vmpk_allocator_t fallback = {NULL, default_allocate, default_release};
  return allocator ? *allocator : fallback;
}

void *vmpk_allocator_take(const vmpk_allocator_t *allocator, uint64_t size) {
  return size > SIZE_MAX ? NULL : allocator->allocate(allocator->context, size, VMPK_ALIGNMENT);
}

void *vmpk_allocator_zeroed(const vmpk_allocator_t *allocator, uint64_t size) {
  void *memory = vmpk_allocator_take(allocator, size);
  return memory ? memset(memory, 0, (size_t)size) : NULL;
}

void vmpk_allocator_give(const vmpk_allocator_t *allocator, void *memory) {
  if (memory)
    allocator->release(allocator->context, memory);
}
