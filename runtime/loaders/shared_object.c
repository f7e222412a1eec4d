/* A lone shared object, opened by path. */
#define _GNU_SOURCE
#include "../src/error.h"
#include "code.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Copies `size` bytes of a file into memory. */
static vmpk_status_t read_all(int file, uint8_t *memory, uint64_t size, const char *path, vmpk_error_t *error) {
  for (uint64_t done = 0; done < size;) {
    ssize_t got = pread(file, memory + done, (size_t)(size - done), (off_t)done);
    if (got < 0 && errno == EINTR)
      continue;
    if (got <= 0)
      return vmpk_fail(error, VMPK_STATUS_IO, "'%.200s' cannot be read: %s", path,
                       got ? strerror(errno) : "it became shorter");
    done += (uint64_t)got;
  }
  return VMPK_STATUS_OK;
}

/* A sealed copy of an open file, as a file in memory. */
static vmpk_status_t copy_file(int file, const char *path, int *copy, vmpk_error_t *error) {
  struct stat about;
  uint8_t *memory;
  *copy = -1;
  if (fstat(file, &about) != 0 || about.st_size <= 0)
    return vmpk_fail(error, VMPK_STATUS_IO, "'%.200s' is empty or cannot be read", path);
  vmpk_status_t status = vmpk_code_create_memory((uint64_t)about.st_size, copy, &memory, error);
  if (status != VMPK_STATUS_OK)
    return status;
  status = read_all(file, memory, (uint64_t)about.st_size, path, error);
  vmpk_error_t second;
  vmpk_status_t sealed =
      vmpk_code_seal_memory(*copy, memory, (uint64_t)about.st_size, status == VMPK_STATUS_OK ? error : &second);
  return status == VMPK_STATUS_OK ? sealed : status;
}

static vmpk_status_t open_file(const char *path, int *fd, vmpk_error_t *error) {
  *fd = open(path, O_RDONLY | O_CLOEXEC);
  if (*fd >= 0)
    return VMPK_STATUS_OK;
  return vmpk_fail(error, errno == ENOENT || errno == ENOTDIR ? VMPK_STATUS_NOT_FOUND : VMPK_STATUS_IO,
                   "'%.200s' cannot be opened: %s", path, strerror(errno));
}

vmpk_status_t vmpk_dynamic_module_open(const char *path, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                       vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out || !path)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "path or out is NULL");
  *out = NULL;
  int fd;
  vmpk_status_t status = open_file(path, &fd, error);
  return status == VMPK_STATUS_OK ? vmpk_code_load(fd, path, path, allocator, out, error) : status;
}

/* Whatever was done to the file, the copy is a file the dynamic linker has not seen. */
vmpk_status_t vmpk_code_reload_path(const char *path, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                    vmpk_error_t *error) {
  int file, copy;
  vmpk_status_t status = open_file(path, &file, error);
  if (status != VMPK_STATUS_OK)
    return status;
  status = copy_file(file, path, &copy, error);
  close(file);
  if (status == VMPK_STATUS_OK)
    return vmpk_code_load(copy, path, path, allocator, out, error);
  if (copy >= 0)
    close(copy);
  return status;
}

vmpk_status_t vmpk_dynamic_module_reload(const vmpk_module_t *module, vmpk_module_t **out, vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out || !module)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "module or out is NULL");
  *out = NULL;
  if (!module->code.reload)
    return vmpk_fail(error, VMPK_STATUS_UNSUPPORTED, "the module did not come from a file");
  return module->code.reload(&module->allocator, module->code.data, out, error);
}
