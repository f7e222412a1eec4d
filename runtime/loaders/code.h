/* Shared objects in a process: what the loaders have in common. */
#ifndef VMPK_LOADERS_CODE_H
#define VMPK_LOADERS_CODE_H

#include "../src/allocator.h"
#include "../src/module.h"

/** Loads the shared object that is open as `fd` and makes a module of it. Takes fd over, also on failure. `what` names
 * it in messages. path: what a reload opens, or NULL; it is copied. */
vmpk_status_t vmpk_code_load(int fd, const char *what, const char *path, const vmpk_allocator_t *allocator,
                             vmpk_module_t **out, vmpk_error_t *error);

/** Loads a copy of the shared object at `path`. */
vmpk_status_t vmpk_code_reload_path(const char *path, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                    vmpk_error_t *error);

/** Checks that a shared object is for this kind of machine and whole, as far as its headers tell. CORRUPT, UNSUPPORTED
 * or IO say why it is not. */
vmpk_status_t vmpk_code_check_elf(int fd, const char *what, vmpk_error_t *error);

/** Anonymous memory of `size` bytes as a file, mapped for writing at *memory. */
vmpk_status_t vmpk_code_create_memory(uint64_t size, int *fd, uint8_t **memory, vmpk_error_t *error);

/** Unmaps what vmpk_code_create_memory mapped and seals the file: its bytes cannot change any more. */
vmpk_status_t vmpk_code_seal_memory(int fd, uint8_t *memory, uint64_t size, vmpk_error_t *error);

/** 1 when this CPU and system run code of `level`, a level of the kernel library ("" is the ABI's baseline). */
int vmpk_cpu_runs(vmpk_text_t level);

/** Android's name for the ABI this was compiled for, e.g. "x86_64"; "" when it has none. */
const char *vmpk_cpu_abi(void);

#endif /* VMPK_LOADERS_CODE_H */
