/* What the dynamic linker takes on trust: that a file is as long as its headers say. Mapping a file that was cut short
 * would end the process (SIGBUS) instead of failing. */
#define _GNU_SOURCE
#include "../src/error.h"
#include "code.h"

#include <elf.h>
#include <link.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static int read_at(int fd, void *bytes, size_t size, uint64_t offset) {
  return offset <= INT64_MAX - size && pread(fd, bytes, size, (off_t)offset) == (ssize_t)size;
}

/* Where the last byte of the segments is; 0 when the headers cannot be read. */
static uint64_t end_of_segments(int fd, const ElfW(Ehdr) * header) {
  uint64_t end = 1;
  for (uint32_t i = 0; i < header->e_phnum; ++i) {
    ElfW(Phdr) segment;
    if (!read_at(fd, &segment, sizeof segment, header->e_phoff + (uint64_t)i * sizeof segment))
      return 0;
    uint64_t segment_end;
    if (__builtin_add_overflow((uint64_t)segment.p_offset, (uint64_t)segment.p_filesz, &segment_end))
      return 0;
    if (segment_end > end)
      end = segment_end;
  }
  return end;
}

vmpk_status_t vmpk_code_check_elf(int fd, const char *what, vmpk_error_t *error) {
  struct stat about;
  ElfW(Ehdr) header;
  if (fstat(fd, &about) != 0 || !S_ISREG(about.st_mode))
    return vmpk_fail(error, VMPK_STATUS_IO, "'%.200s' cannot be loaded: it is no regular file", what);
  if (!read_at(fd, &header, sizeof header, 0) || memcmp(header.e_ident, ELFMAG, SELFMAG) != 0)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "'%.200s' cannot be loaded: it is no shared object", what);
  const int native = sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (header.e_ident[EI_CLASS] != native || header.e_phentsize != sizeof(ElfW(Phdr)))
    return vmpk_fail(error, VMPK_STATUS_UNSUPPORTED, "'%.200s' cannot be loaded: it is for another kind of machine",
                     what);
  uint64_t end = end_of_segments(fd, &header);
  if (!end || end > (uint64_t)about.st_size)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "'%.200s' is cut short: size is %llu when it should be at least %llu",
                     what, (unsigned long long)about.st_size, (unsigned long long)end);
  return VMPK_STATUS_OK;
}
