/* vmpk/status.h - the status codes of the ABI and of the C API.
 *
 * Values are pinned: they cross the module boundary and appear in crash reports. New codes take new numbers. */
#ifndef VMPK_STATUS_H
#define VMPK_STATUS_H

#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/** A status: 0 is success, every other value is one of `VMPK_STATUS_*`. */
typedef int32_t vmpk_status_t;

enum {
  VMPK_STATUS_OK = 0,
  VMPK_STATUS_INVALID_ARGUMENT = 1, /**< a NULL, a wrong size, shape, dtype or ordinal */
  VMPK_STATUS_OUT_OF_MEMORY = 2,    /**< the host's allocator answered NULL */
  VMPK_STATUS_VERSION_MISMATCH = 3, /**< module and host have no ABI version in common */
  VMPK_STATUS_CORRUPT = 4,          /**< bytes that fail a check: table, bundle, digest */
  VMPK_STATUS_NOT_FOUND = 5,        /**< no such function, tensor, file, variant or symbol */
  VMPK_STATUS_UNSUPPORTED = 6,      /**< well formed, but not on this platform or build */
  VMPK_STATUS_IO = 7,               /**< the operating system refused: open, map, dlopen */
  VMPK_STATUS_OUT_OF_RANGE = 8,     /**< a dynamic dim outside its declared bounds */
  VMPK_STATUS_SHAPE_MISMATCH = 9,   /**< two dims of the same name differ, or a static dim does */
  VMPK_STATUS_MISSING_IMPORT = 10,  /**< the host could not resolve a required import */
  VMPK_STATUS_INTERNAL = 11         /**< a broken invariant: a bug in vmpack */
};

#ifdef __cplusplus
}
#endif
#endif /* VMPK_STATUS_H */
