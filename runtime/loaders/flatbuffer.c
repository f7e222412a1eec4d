#include "flatbuffer.h"

#include <string.h>

/* 1 when `count` bytes at `at` are inside. */
static int inside(const vmpk_fb_t *fb, uint64_t at, uint64_t count) { return at <= fb->size && count <= fb->size - at; }

/* Little-endian, from any address; the caller has checked that the bytes are inside. */
static uint64_t load(const vmpk_fb_t *fb, uint64_t at, uint32_t width) {
  uint64_t value = 0;
  for (uint32_t i = 0; i < width; ++i)
    value |= (uint64_t)fb->bytes[at + i] << 8 * i;
  return value;
}

static vmpk_fb_result_t open_table(const vmpk_fb_t *fb, uint64_t at, vmpk_fb_table_t *out) {
  if (!inside(fb, at, 4))
    return VMPK_FB_BROKEN;
  int64_t vtable = (int64_t)at - (int32_t)(uint32_t)load(fb, at, 4);
  if (vtable < 0 || !inside(fb, (uint64_t)vtable, 4))
    return VMPK_FB_BROKEN;
  vmpk_fb_table_t table = {at, (uint64_t)vtable, 0, 0};
  table.vtable_size = (uint32_t)load(fb, table.vtable, 2);
  table.size = (uint32_t)load(fb, table.vtable + 2, 2);
  if (table.vtable_size < 4 || !inside(fb, table.vtable, table.vtable_size) || table.size < 4 ||
      !inside(fb, at, table.size))
    return VMPK_FB_BROKEN;
  *out = table;
  return VMPK_FB_PRESENT;
}

/* Follows the 32-bit offset that is stored at `at`. */
static uint64_t follow(const vmpk_fb_t *fb, uint64_t at) { return at + load(fb, at, 4); }

vmpk_fb_result_t vmpk_fb_root(const vmpk_fb_t *fb, const char *identifier, vmpk_fb_table_t *out) {
  if (!inside(fb, 0, 8) || memcmp(fb->bytes + 4, identifier, 4) != 0)
    return VMPK_FB_BROKEN;
  return open_table(fb, follow(fb, 0), out);
}

/* Where the inline bytes of a field are. */
static vmpk_fb_result_t find(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field, uint32_t width,
                             uint64_t *at) {
  uint32_t entry = 4 + 2 * field;
  if (entry + 2 > table->vtable_size)
    return VMPK_FB_ABSENT;
  uint32_t offset = (uint32_t)load(fb, table->vtable + entry, 2);
  if (!offset)
    return VMPK_FB_ABSENT;
  if (offset < 4 || offset + width > table->size)
    return VMPK_FB_BROKEN;
  *at = table->at + offset;
  return VMPK_FB_PRESENT;
}

vmpk_fb_result_t vmpk_fb_scalar(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field, uint32_t width,
                                uint64_t fallback, uint64_t *out) {
  uint64_t at;
  vmpk_fb_result_t result = find(fb, table, field, width, &at);
  *out = result == VMPK_FB_PRESENT ? load(fb, at, width) : fallback;
  return result;
}

vmpk_fb_result_t vmpk_fb_struct(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field, uint32_t width,
                                const uint8_t **out) {
  uint64_t at;
  vmpk_fb_result_t result = find(fb, table, field, width, &at);
  *out = result == VMPK_FB_PRESENT ? fb->bytes + at : NULL;
  return result;
}

vmpk_fb_result_t vmpk_fb_table(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field,
                               vmpk_fb_table_t *out) {
  uint64_t at;
  vmpk_fb_result_t result = find(fb, table, field, 4, &at);
  return result == VMPK_FB_PRESENT ? open_table(fb, follow(fb, at), out) : result;
}

vmpk_fb_result_t vmpk_fb_vector(const vmpk_fb_t *fb, const vmpk_fb_table_t *table, uint32_t field, uint32_t width,
                                vmpk_fb_vector_t *out) {
  uint64_t at;
  memset(out, 0, sizeof *out);
  vmpk_fb_result_t result = find(fb, table, field, 4, &at);
  if (result != VMPK_FB_PRESENT)
    return result;
  at = follow(fb, at);
  if (!inside(fb, at, 4))
    return VMPK_FB_BROKEN;
  uint32_t count = (uint32_t)load(fb, at, 4);
  if (!inside(fb, at + 4, (uint64_t)count * width))
    return VMPK_FB_BROKEN;
  out->at = at + 4;
  out->count = count;
  return VMPK_FB_PRESENT;
}

vmpk_fb_result_t vmpk_fb_element(const vmpk_fb_t *fb, const vmpk_fb_vector_t *vector, uint32_t index,
                                 vmpk_fb_table_t *out) {
  return open_table(fb, follow(fb, vector->at + 4 * (uint64_t)index), out);
}
