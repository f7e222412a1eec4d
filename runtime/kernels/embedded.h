/* The kernels' bitcode, as it sits in the program. */
#ifndef VMPK_KERNELS_EMBEDDED_H
#define VMPK_KERNELS_EMBEDDED_H

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/** One LLVM bitcode module: the kernels of `level` ("x86-64-v3"), or what code generation may call besides, when the
 * name ends in ".support" ("x86-64-v3.support"). */
typedef struct {
  const char *level;
  const unsigned char *data;
  size_t size; /**< bytes */
} vmpk_kernel_level_t;

/** All of them, constant and for ever. */
extern const vmpk_kernel_level_t vmpk_kernel_levels[];
extern const size_t vmpk_kernel_level_count;

#ifdef __cplusplus
}
#endif

#endif /* VMPK_KERNELS_EMBEDDED_H */
