#include "macho_loader.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

enum {
  LC_SEGMENT_64 = 0x19,
  LC_LOAD_DYLIB = 0x0c,
  LC_DYLD_INFO = 0x22,
  LC_DYLD_INFO_ONLY = (int)0x80000022,
  LC_DYLD_EXPORTS_TRIE = (int)0x80000033,
  LC_DYLD_CHAINED_FIXUPS = (int)0x80000034
};

static uint16_t read16(const unsigned char *at) {
  uint16_t value;
  memcpy(&value, at, sizeof(value));
  return value;
}
static uint32_t read32(const unsigned char *at) {
  uint32_t value;
  memcpy(&value, at, sizeof(value));
  return value;
}
static uint64_t read64(const unsigned char *at) {
  uint64_t value;
  memcpy(&value, at, sizeof(value));
  return value;
}
static void write64(unsigned char *at, uint64_t value) { memcpy(at, &value, sizeof(value)); }

static uint64_t read_uleb(const unsigned char **at) {
  uint64_t value = 0;
  for (unsigned shift = 0;; shift += 7) {
    unsigned char byte = *(*at)++;
    value |= (uint64_t)(byte & 0x7f) << shift;
    if (!(byte & 0x80))
      return value;
  }
}

int macho_is_image(const char *path) {
  unsigned char magic[4] = {0};
  FILE *file = fopen(path, "rb");
  size_t count = file ? fread(magic, 1, sizeof(magic), file) : 0;
  if (file)
    fclose(file);
  return count == sizeof(magic) && read32(magic) == 0xfeedfacf;
}

static unsigned char *read_whole(const char *path) {
  FILE *file = fopen(path, "rb");
  long size = -1;
  if (file && fseek(file, 0, SEEK_END) == 0)
    size = ftell(file);
  unsigned char *bytes = size > 0 ? malloc((size_t)size) : NULL;
  if (bytes && (fseek(file, 0, SEEK_SET) != 0 || fread(bytes, 1, (size_t)size, file) != (size_t)size)) {
    free(bytes);
    bytes = NULL;
  }
  if (file)
    fclose(file);
  return bytes;
}

/* One load command after the other; NULL after the last. */
static const unsigned char *next_command(const unsigned char *file, const unsigned char *command, uint32_t *left) {
  if (!command) {
    *left = read32(file + 16);
    command = file + 32;
  } else {
    command += read32(command + 4);
    --*left;
  }
  return *left ? command : NULL;
}

static const unsigned char *find_command(const unsigned char *file, uint32_t kind) {
  uint32_t left = 0;
  for (const unsigned char *each = NULL; (each = next_command(file, each, &left));)
    if (read32(each) == kind)
      return each;
  return NULL;
}

static const unsigned char *segment(const unsigned char *file, uint32_t index) {
  uint32_t left = 0;
  for (const unsigned char *each = NULL; (each = next_command(file, each, &left));)
    if (read32(each) == LC_SEGMENT_64 && index-- == 0)
      return each;
  return NULL;
}

static const char *map_segments(macho_image_t *image) {
  uint64_t end = 0;
  for (uint32_t i = 0; segment(image->file, i); ++i) {
    const unsigned char *each = segment(image->file, i);
    uint64_t segment_end = read64(each + 24) + read64(each + 32);
    end = segment_end > end ? segment_end : end;
  }
  image->base = mmap(NULL, end, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (image->base == MAP_FAILED)
    return "no memory";
  for (uint32_t i = 0; segment(image->file, i); ++i) {
    const unsigned char *each = segment(image->file, i);
    memcpy(image->base + read64(each + 24), image->file + read64(each + 40), read64(each + 48));
  }
  return NULL;
}

static const char *protect_segments(macho_image_t *image) {
  for (uint32_t i = 0; segment(image->file, i); ++i) {
    const unsigned char *each = segment(image->file, i);
    int initial = (int)read32(each + 60);
    int protection = (initial & 1 ? PROT_READ : 0) | (initial & 2 ? PROT_WRITE : 0) | (initial & 4 ? PROT_EXEC : 0);
    uint64_t size = (read64(each + 32) + 0xfff) & ~UINT64_C(0xfff);
    char *start = (char *)image->base + read64(each + 24);
    if (size && mprotect(start, size, protection) != 0)
      return "mprotect failed";
    __builtin___clear_cache(start, start + size);
  }
  return NULL;
}

/* Follows one page's chain of pointers. Formats 2 and 6 differ in whether targets are addresses or offsets: with the
 * image at address 0 they are the same. */
static const char *fix_chain(macho_image_t *image, unsigned char *at) {
  for (;;) {
    uint64_t pointer = read64(at), target = pointer & ((UINT64_C(1) << 36) - 1), high = pointer >> 36 & 0xff;
    if (pointer >> 63)
      return "it imports symbols";
    write64(at, ((uint64_t)(uintptr_t)image->base + target) | high << 56);
    uint64_t next = pointer >> 51 & 0xfff;
    if (!next)
      return NULL;
    at += next * 4;
  }
}

static const char *apply_chained_fixups(macho_image_t *image, const unsigned char *command) {
  const unsigned char *fixups = image->file + read32(command + 8), *starts = fixups + read32(fixups + 4);
  for (uint32_t i = 0; i < read32(starts); ++i) {
    uint32_t offset = read32(starts + 4 + 4 * i);
    const unsigned char *in_segment = starts + offset;
    if (!offset)
      continue;
    uint16_t page_size = read16(in_segment + 4), format = read16(in_segment + 6), count = read16(in_segment + 20);
    if (format != 2 && format != 6)
      return "its pointers have an unknown format";
    for (uint16_t page = 0; page < count; ++page) {
      uint16_t start = read16(in_segment + 22 + 2 * page);
      if (start == 0xffff)
        continue;
      const char *problem = fix_chain(image, image->base + read64(in_segment + 8) + (uint64_t)page * page_size + start);
      if (problem)
        return problem;
    }
  }
  return NULL;
}

static const char *apply_rebase_opcodes(macho_image_t *image, const unsigned char *command) {
  const unsigned char *at = image->file + read32(command + 8), *end = at + read32(command + 12);
  unsigned char *place = image->base;
  if (read32(command + 20) != 0)
    return "it imports symbols";
  while (at < end) {
    unsigned char opcode = *at & 0xf0, immediate = *at & 0x0f;
    uint64_t count = 0, skip = 0;
    ++at;
    switch (opcode) {
    case 0x00: /* done */
      return NULL;
    case 0x10: /* type: pointers are all there is */
      break;
    case 0x20:
      place = image->base + read64(segment(image->file, immediate) + 24) + read_uleb(&at);
      break;
    case 0x30:
      place += read_uleb(&at);
      break;
    case 0x40:
      place += immediate * 8u;
      break;
    case 0x50:
      count = immediate;
      break;
    case 0x60:
      count = read_uleb(&at);
      break;
    case 0x70:
      count = 1;
      skip = read_uleb(&at);
      break;
    case 0x80:
      count = read_uleb(&at);
      skip = read_uleb(&at);
      break;
    default:
      return "it has an unknown rebase opcode";
    }
    for (; count; --count, place += 8 + skip)
      write64(place, read64(place) + (uint64_t)(uintptr_t)image->base);
  }
  return NULL;
}

const char *macho_open(const char *path, macho_image_t *image) {
  memset(image, 0, sizeof(*image));
  if (!macho_is_image(path))
    return "it is no 64-bit Mach-O file";
  image->file = read_whole(path);
  if (!image->file)
    return "it cannot be read";
  if (find_command(image->file, LC_LOAD_DYLIB))
    return "it needs other libraries";
  const unsigned char *info = find_command(image->file, (uint32_t)LC_DYLD_INFO_ONLY);
  if (!info)
    info = find_command(image->file, LC_DYLD_INFO);
  const unsigned char *chained = find_command(image->file, (uint32_t)LC_DYLD_CHAINED_FIXUPS);
  const unsigned char *trie = find_command(image->file, (uint32_t)LC_DYLD_EXPORTS_TRIE);
  const char *problem = map_segments(image);
  if (!problem && chained)
    problem = apply_chained_fixups(image, chained);
  if (!problem && info)
    problem = apply_rebase_opcodes(image, info);
  if (!problem)
    problem = protect_segments(image);
  if (trie || info) {
    const unsigned char *where = trie ? trie + 8 : info + 40;
    image->trie = image->file + read32(where);
    image->trie_size = read32(where + 4);
  }
  return problem;
}

void *macho_symbol(const macho_image_t *image, const char *name) {
  const unsigned char *node = image->trie, *end = image->trie + image->trie_size;
  while (node && node < end) {
    uint64_t terminal_size = read_uleb(&node);
    const unsigned char *children = node + terminal_size, *found = NULL;
    if (*name == '\0') {
      if (!terminal_size)
        return NULL;
      read_uleb(&node); /* flags: an ordinary symbol */
      return image->base + read_uleb(&node);
    }
    unsigned char count = *children++;
    for (; count && !found; --count) {
      size_t length = strlen((const char *)children);
      int matches = strncmp(name, (const char *)children, length) == 0;
      children += length + 1;
      uint64_t offset = read_uleb(&children);
      if (matches) {
        found = image->trie + offset;
        name += length;
      }
    }
    node = found;
  }
  return NULL;
}
