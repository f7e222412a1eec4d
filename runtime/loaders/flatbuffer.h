/* Reading flatbuffers that nobody has verified: every offset is checked when it is followed.
 *
 * Positions are byte offsets into the buffer. Functions that look for a field answer VMPK_FB_ABSENT when it is not
 * there and VMPK_FB_BROKEN when the bytes lead outside of the buffer. Nothing needs to be aligned. */
#ifndef VMPK_LOADERS_FLATBUFFER_H
#define VMPK_LOADERS_FLATBUFFER_H

#include <stdint.h>

typedef struct vmpk_fb {
  const uint8_t *bytes;
  uint64_t size;
} vmpk_fb_t;

/** A table whose vtable and inline part lie inside the buffer. */
typedef struct vmpk_fb_table {
  uint64_t at, vtable;
  uint32_t size, vtable_size;
} vmpk_fb_table_t;

/** A vector or string that lies inside the buffer. */
typedef struct vmpk_fb_vector {
  uint64_t at; /**< of the first element */
  uint32_t count;
} vmpk_fb_vector_t;

typedef enum vmpk_fb_result { VMPK_FB_BROKEN = -1, VMPK_FB_ABSENT = 0, VMPK_FB_PRESENT = 1 } vmpk_fb_result_t;

/** The root table of a buffer with this file identifier (four characters). */
vmpk_fb_result_t vmpk_fb_root(const vmpk_fb_t *fb, const char *identifier, vmpk_fb_table_t *out);

/** Fields by their number in the schema. A scalar's `width` is its bytes; absent scalars give `fallback`. */
vmpk_fb_result_t vmpk_fb_scalar(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field, uint32_t width,
                                uint64_t fallback, uint64_t *out);
/** A struct's `width` bytes, in place. */
vmpk_fb_result_t vmpk_fb_struct(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field, uint32_t width,
                                const uint8_t **out);
vmpk_fb_result_t vmpk_fb_table(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field, vmpk_fb_table_t *out);
/** A vector of elements of `width` bytes; a string is one of width 1. */
vmpk_fb_result_t vmpk_fb_vector(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field, uint32_t width,
                                vmpk_fb_vector_t *out);

/** The table that element `index` (below the count) of a vector of tables points to. */
vmpk_fb_result_t vmpk_fb_element(const vmpk_fb_t *fb, const vmpk_fb_vector_t *vector, uint32_t index,
                                 vmpk_fb_table_t *out);

#endif /* VMPK_LOADERS_FLATBUFFER_H */
