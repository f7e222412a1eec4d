/* vmpk/vmpk.h - the C API that applications run models with.
 *
 *   vmpk_module_t    a compiled model: linked in, a .so, a bundle, a side module, or the JIT's; the API is the same
 *   vmpk_instance_t  one thread's place to run it: the arena lives here
 *
 *     vmpk_error_t error;
 *     vmpk_module_t *module;
 *     vmpk_instance_t *instance;
 *     vmpk_module_create(vmpk_mnist_query, NULL, &module, &error);     or vmpk_module_open("mnist.so", ...)
 *     vmpk_instance_create(module, NULL, &instance, &error);
 *     vmpk_tensor_t x = {pixels, sizeof pixels, 2, {1, 784}}, y = {scores, sizeof scores, 2, {1, 10}};
 *     vmpk_instance_invoke(instance, 0, &x, 1, &y, 1, &error);
 *     vmpk_instance_destroy(instance);
 *     vmpk_module_release(module);
 *
 * Threads: a module may be used from any thread; an instance by one thread at a time. Nothing here prints, exits, or
 * keeps a thread. Every function that fails returns a status and, if `error` is not NULL, words that name the thing.
 * Out-parameters are zeroed first. NULL for a required pointer is INVALID_ARGUMENT. */
#ifndef VMPK_VMPK_H
#define VMPK_VMPK_H

#include <stddef.h>
#include <stdint.h>

#include "vmpk/abi.h"
#include "vmpk/status.h"

#ifdef __cplusplus
extern "C" {
#endif

typedef struct vmpk_module vmpk_module_t;
typedef struct vmpk_instance vmpk_instance_t;

/** What went wrong, in words; filled only on failure. Lives where the caller put it. */
typedef struct vmpk_error {
  vmpk_status_t status;
  char message[252]; /**< NUL-terminated UTF-8, cut at the end when too long */
} vmpk_error_t;

/** The name of a status, e.g. "SHAPE_MISMATCH"; never NULL. Static storage. */
const char *vmpk_status_name(vmpk_status_t status);
/** The name of a VMPK_DTYPE_*, e.g. "f32", or "invalid". Static storage. */
const char *vmpk_dtype_name(uint32_t dtype);
/** Bytes of one element, 0 for an invalid dtype. */
size_t vmpk_dtype_size(uint32_t dtype);

/** Where memory comes from. `allocate` answers memory aligned to `alignment` (a power of two) or NULL. */
typedef struct vmpk_allocator {
  void *(*allocate)(void *context, size_t size, size_t alignment);
  void (*release)(void *context, void *memory);
  void *context;
} vmpk_allocator_t;

/** The C library's aligned_alloc and free. */
const vmpk_allocator_t *vmpk_allocator_default(void);

/* ---- Modules ---------------------------------------------------------------------------------------------------- */

/** A module from its query function (linked in or made by the JIT). Checks the whole module table as untrusted input.
 * `allocator` NULL: the default. The table, the weights and the code must outlive the module. */
vmpk_status_t vmpk_module_create(vmpk_query_fn query, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                 vmpk_error_t *error);

/** Opens a shared object by path (dlopen, RTLD_NOW | RTLD_LOCAL). Each open sees the file's bytes of that moment, even
 * when an older version of the same path is still open. Links only with vmpk_loaders. */
vmpk_status_t vmpk_module_open(const char *path, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                               vmpk_error_t *error);

/** Opens the variant of an android bundle (schemas/bundle.fbs) that this process can run: every section is checked
 * against its SHA-256 before it is read further; the code goes to a sealed memfd, never to a file. The bundle's bytes
 * are borrowed during the call only. Links only with vmpk_loaders. */
vmpk_status_t vmpk_module_open_bundle(const void *bytes, size_t size, const vmpk_allocator_t *allocator,
                                      vmpk_module_t **out, vmpk_error_t *error);

/** Another owner of `module`; answers it. */
vmpk_module_t *vmpk_module_retain(vmpk_module_t *module);
/** Gives up ownership; the last owner's call unloads. Instances own their module. NULL is fine. */
void vmpk_module_release(vmpk_module_t *module);

/** Supplies weights that the module does not embed: borrowed until the module is gone, VMPK_ALIGNMENT-aligned, and
 * checked against the table's size and SHA-256. */
vmpk_status_t vmpk_module_set_weights(vmpk_module_t *module, const void *weights, uint64_t size, vmpk_error_t *error);

/** UTF-8 text inside the module table; not NUL-terminated. */
typedef struct vmpk_text {
  const char *data;
  size_t size;
} vmpk_text_t;

typedef struct vmpk_module_info {
  vmpk_text_t name;
  uint32_t abi_version;
  uint32_t function_count, dispatch_count, import_count;
  const uint8_t *digest;         /**< 32 bytes: SHA-256 of the shared module */
  const uint8_t *weights_digest; /**< 32 bytes */
  uint64_t weights_size;
  uint64_t stack_size; /**< 0: not known */
  int weights_embedded;
} vmpk_module_info_t;

typedef struct vmpk_function_info {
  vmpk_text_t name;
  uint32_t input_count, output_count, dim_count;
  uint64_t arena_size; /**< UINT64_MAX: depends on the dims, see vmpk_instance_measure */
} vmpk_function_info_t;

typedef struct vmpk_tensor_info {
  vmpk_text_t name;
  uint32_t dtype, rank;
  /** As in the table: a size, -(1 + k) for symbolic dim k, or VMPK_DIM_COMPUTED. */
  int64_t dims[VMPK_MAX_RANK];
} vmpk_tensor_info_t;

typedef struct vmpk_dim_info {
  vmpk_text_t name;
  int64_t minimum, maximum;
} vmpk_dim_info_t;

typedef struct vmpk_dispatch_info {
  vmpk_text_t name, location;
  uint64_t flops, bytes;
} vmpk_dispatch_info_t;

/** What a module is made of. Ordinals out of range are NOT_FOUND. Everything answered lives as long as the module. */
vmpk_status_t vmpk_module_info(const vmpk_module_t *module, vmpk_module_info_t *out);
vmpk_status_t vmpk_module_function(const vmpk_module_t *module, uint32_t function, vmpk_function_info_t *out);
vmpk_status_t vmpk_module_input(const vmpk_module_t *module, uint32_t function, uint32_t index,
                                vmpk_tensor_info_t *out);
vmpk_status_t vmpk_module_output(const vmpk_module_t *module, uint32_t function, uint32_t index,
                                 vmpk_tensor_info_t *out);
vmpk_status_t vmpk_module_dim(const vmpk_module_t *module, uint32_t function, uint32_t index, vmpk_dim_info_t *out);
vmpk_status_t vmpk_module_dispatch(const vmpk_module_t *module, uint32_t ordinal, vmpk_dispatch_info_t *out);
/** The ordinal of the function of that name. */
vmpk_status_t vmpk_module_find_function(const vmpk_module_t *module, const char *name, uint32_t *out);

/* ---- Instances -------------------------------------------------------------------------------------------------- */

/** `host` NULL: the module runs its grids in the calling thread. The host must outlive the instance. */
vmpk_status_t vmpk_instance_create(vmpk_module_t *module, const vmpk_host_t *host, vmpk_instance_t **out,
                                   vmpk_error_t *error);
/** NULL is fine. */
void vmpk_instance_destroy(vmpk_instance_t *instance);

/** A dense row-major tensor in the caller's memory. */
typedef struct vmpk_tensor {
  void *data;
  size_t size; /**< bytes */
  uint32_t rank;
  int64_t dims[VMPK_MAX_RANK];
} vmpk_tensor_t;

/** Binds the symbolic dims from the inputs' shapes (their data may be NULL), and answers the outputs' shapes and byte
 * sizes (outputs[i].data is left as it is) and the arena's size (or NULL). SHAPE_MISMATCH or OUT_OF_RANGE name the
 * tensor and the dim. */
vmpk_status_t vmpk_instance_measure(vmpk_instance_t *instance, uint32_t function, const vmpk_tensor_t *inputs,
                                    uint32_t input_count, vmpk_tensor_t *outputs, uint32_t output_count,
                                    uint64_t *arena_size, vmpk_error_t *error);

/** Runs a function. All shapes and sizes are checked first. The arena grows when the dims ask for it. Outputs may not
 * overlap any other buffer. Data needs the alignment of its element type only. */
vmpk_status_t vmpk_instance_invoke(vmpk_instance_t *instance, uint32_t function, const vmpk_tensor_t *inputs,
                                   uint32_t input_count, const vmpk_tensor_t *outputs, uint32_t output_count,
                                   vmpk_error_t *error);

/* ---- Hosts ------------------------------------------------------------------------------------------------------ */

/** A pool of worker threads that grids are spread over; shared by any number of instances. Link vmpk_hosts. */
typedef struct vmpk_thread_pool vmpk_thread_pool_t;

/** `threads` counts the calling thread too: 1 makes no worker; 0 is the number of processors. */
vmpk_status_t vmpk_thread_pool_create(uint32_t threads, vmpk_thread_pool_t **out, vmpk_error_t *error);
/** No invoke may be under way. NULL is fine. */
void vmpk_thread_pool_destroy(vmpk_thread_pool_t *pool);
/** The host for vmpk_instance_create; lives as long as the pool. */
const vmpk_host_t *vmpk_thread_pool_host(vmpk_thread_pool_t *pool);

/** A host around another (NULL: the calling thread) that adds up the time of each dispatch. One instance at a time. */
typedef struct vmpk_trace vmpk_trace_t;
typedef struct vmpk_trace_row {
  uint64_t nanoseconds, count;
} vmpk_trace_row_t;

vmpk_status_t vmpk_trace_create(const vmpk_host_t *inner, uint32_t dispatch_count, vmpk_trace_t **out,
                                vmpk_error_t *error);
void vmpk_trace_destroy(vmpk_trace_t *trace);
const vmpk_host_t *vmpk_trace_host(vmpk_trace_t *trace);
/** One row a dispatch ordinal; lives as long as the trace. */
const vmpk_trace_row_t *vmpk_trace_rows(const vmpk_trace_t *trace);
void vmpk_trace_reset(vmpk_trace_t *trace);

#ifdef __cplusplus
}
#endif
#endif /* VMPK_VMPK_H */
