/* Loading through a file descriptor: /proc/self/fd/N names exactly one file, whatever its path has become, and a file
 * in memory has no other name. The descriptor stays open as long as the code is loaded: the dynamic linker takes a name
 * it has seen for the same library, so the number may not be used again before. */
#define _GNU_SOURCE
#include "code.h"
#include "../src/error.h"

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* ---- Files in memory -------------------------------------------------------------------------------------------- */

#ifndef MFD_CLOEXEC
#define MFD_CLOEXEC 1u
#endif
#ifndef MFD_ALLOW_SEALING
#define MFD_ALLOW_SEALING 2u
#endif
#ifndef F_ADD_SEALS
#define F_ADD_SEALS 1033
#define F_SEAL_SEAL 1
#define F_SEAL_SHRINK 2
#define F_SEAL_GROW 4
#define F_SEAL_WRITE 8
#endif

vmpk_status_t vmpk_code_create_memory(uint64_t size, int *fd, uint8_t **memory, vmpk_error_t *error) {
  *memory = NULL;
  /* by number: bionic has the function only since API level 30 */
  *fd = (int)syscall(SYS_memfd_create, "vmpk", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (*fd < 0)
    return vmpk_fail(error, VMPK_STATUS_IO, "memfd_create failed: %s", strerror(errno));
  void *mapped = MAP_FAILED;
  if (size <= SIZE_MAX && ftruncate(*fd, (off_t)size) == 0)
    mapped = mmap(NULL, (size_t)size, PROT_READ | PROT_WRITE, MAP_SHARED, *fd, 0);
  if (mapped == MAP_FAILED) {
    vmpk_fail(error, VMPK_STATUS_IO, "no memory for %llu bytes of code: %s", (unsigned long long)size, strerror(errno));
    close(*fd);
    *fd = -1;
    return VMPK_STATUS_IO;
  }
  *memory = mapped;
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_code_seal_memory(int fd, uint8_t *memory, uint64_t size, vmpk_error_t *error) {
  if (munmap(memory, (size_t)size) != 0 ||
      fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return vmpk_fail(error, VMPK_STATUS_IO, "sealing memory failed: %s", strerror(errno));
  return VMPK_STATUS_OK;
}

/* ---- Code ------------------------------------------------------------------------------------------------------- */

typedef struct library {
  void *handle;
  int fd;
  char path[]; /* what a reload opens; "" when there is nothing to open */
} library_t;

static void unload(const vmpk_allocator_t *allocator, void *data) {
  library_t *library = data;
  if (library->handle)
    dlclose(library->handle);
  close(library->fd);
  vmpk_allocator_give(allocator, library);
}

static vmpk_status_t reload(const vmpk_allocator_t *allocator, const void *data, vmpk_module_t **out,
                            vmpk_error_t *error) {
  const library_t *library = data;
  if (!library->path[0])
    return vmpk_fail(error, VMPK_STATUS_UNSUPPORTED, "the module did not come from a file");
  return vmpk_code_reload_path(library->path, allocator, out, error);
}

/* dlopen and dlsym; dlerror's words go into *error. */
static vmpk_status_t find_query(library_t *library, const char *what, vmpk_query_fn *query, vmpk_error_t *error) {
  char name[40];
  snprintf(name, sizeof name, "/proc/self/fd/%d", library->fd);
  library->handle = dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (!library->handle) {
    const char *words = dlerror();
    return vmpk_fail(error, VMPK_STATUS_IO, "'%.200s' cannot be loaded: %s", what, words ? words : "no reason given");
  }
  void *symbol = dlsym(library->handle, "vmpk_query");
  if (!symbol)
    return vmpk_fail(error, VMPK_STATUS_NOT_FOUND, "'%.200s' is no vmpack module: it exports no vmpk_query", what);
  memcpy(query, &symbol, sizeof symbol); /* POSIX, not C, lets an object pointer be a function's */
  return VMPK_STATUS_OK;
}

vmpk_status_t vmpk_code_load(int fd, const char *what, const char *path, const vmpk_allocator_t *allocator,
                             vmpk_module_t **out, vmpk_error_t *error) {
  vmpk_allocator_t memory = vmpk_allocator_or_default(allocator);
  size_t length = path ? strlen(path) : 0;
  library_t *library = vmpk_allocator_zeroed(&memory, sizeof *library + length + 1);
  if (!library) {
    close(fd);
    return vmpk_fail(error, VMPK_STATUS_OUT_OF_MEMORY, "no memory for a module");
  }
  library->fd = fd;
  if (path)
    memcpy(library->path, path, length);
  vmpk_query_fn query = NULL;
  vmpk_status_t status = vmpk_code_check_elf(fd, what, error);
  if (status == VMPK_STATUS_OK)
    status = find_query(library, what, &query, error);
  if (status == VMPK_STATUS_OK) {
    vmpk_code_t code = {library, unload, reload};
    status = vmpk_module_create_from(query, &code, &memory, out, error);
  }
  if (status != VMPK_STATUS_OK)
    unload(&memory, library);
  return status;
}
