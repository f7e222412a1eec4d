/* vmpk/vmpk.h - load a compiled module, look at it, run it.
 *
 *   query function (linked in, JIT) ──┐
 *   .so file, bundle in memory ───────┼──► vmpk_module_t ──► vmpk_instance_t ──► measure, invoke
 *   wasm side module (Emscripten) ────┘    code, table,      arena, bound to
 *                                          weights           a host's threads
 *
 * Libraries: vmpk::runtime (module, instance, serial host; needs only libc), vmpk::hosts (thread pool, trace; needs
 * threads), vmpk::loaders (files and bundles; needs dlopen and zstd). The zones below say which one a function is in.
 *
 * Errors: functions that can fail return a status and fill *error, when it is not NULL, with words that name the thing
 * and the numbers. Nothing is printed, ever. Out-parameters are set to NULL or zero first.
 * Threads: a module may be shared by any number of threads. An instance is for one thread at a time.
 * NULL: a pointer may be NULL only where it is said; elsewhere NULL gives INVALID_ARGUMENT (a crash for accessors'
 * out-parameters). release and destroy functions take NULL and do nothing. */
#ifndef VMPK_VMPK_H
#define VMPK_VMPK_H

#include "vmpk/abi.h"

#include <stddef.h>

#ifdef __cplusplus
extern "C" {
#endif

/* ---- Errors (vmpk::runtime) ------------------------------------------------------------------------------------- */

/** Room for what went wrong, supplied by the caller. Need not be initialized; OK calls leave it empty. */
typedef struct vmpk_error {
  vmpk_status_t status;
  char message[508]; /**< NUL-terminated UTF-8, lower case, no final period; cut when too long */
} vmpk_error_t;

/** The status in words, e.g. "out of memory". Never NULL; unknown values give "unknown status". */
const char *vmpk_status_text(vmpk_status_t status);

/** The size of an element in bytes; 0 for values that are no dtype. */
uint64_t vmpk_dtype_size(uint32_t dtype);

/** The dtype's name, e.g. "f32". Never NULL. */
const char *vmpk_dtype_text(uint32_t dtype);

/* ---- Memory (vmpk::runtime) ------------------------------------------------------------------------------------- */

/** Where the runtime gets memory from. Copied by those that take it; `context` must live as long as they do. */
typedef struct vmpk_allocator {
  void *context;
  /** `size` bytes at a multiple of `alignment` (a power of two), or NULL. Any thread. */
  void *(*allocate)(void *context, uint64_t size, uint64_t alignment);
  /** Takes back what allocate gave; never NULL. */
  void (*release)(void *context, void *memory);
} vmpk_allocator_t;

/* ---- Modules (vmpk::runtime) ------------------------------------------------------------------------------------ */

/** A loaded module: code, module table, weights. Counted references; immutable once its weights are set. */
typedef struct vmpk_module vmpk_module_t;

/** Text in the module table: UTF-8, not NUL-terminated. Lives as long as the module. */
typedef struct vmpk_text {
  const char *data;
  uint32_t size;
} vmpk_text_t;

/** Makes a module from its query function: code that is linked in (`vmpk_NAME_query`) or that a JIT made; it must stay
 * in place until the module is released. The module table is checked as untrusted input: CORRUPT says where it is
 * wrong; VERSION_MISMATCH names both versions. allocator: NULL for malloc. *out holds one reference. */
vmpk_status_t vmpk_module_create(vmpk_query_fn query, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                 vmpk_error_t *error);

/** Adds a reference. */
vmpk_module_t *vmpk_module_retain(vmpk_module_t *module);

/** Drops a reference; the last one unloads the code. Instances hold references. */
void vmpk_module_release(vmpk_module_t *module);

/** Gives external weights to a module: the bytes of NAME.weights. They are borrowed, must be aligned to VMPK_ALIGNMENT
 * and stay unchanged until the module is gone. Size and SHA-256 are checked: CORRUPT when they differ;
 * INVALID_ARGUMENT when the module has its weights already. Call it before any instance is made. */
vmpk_status_t vmpk_module_set_weights(vmpk_module_t *module, const void *weights, uint64_t size, vmpk_error_t *error);

/** What a module says of itself. */
typedef struct vmpk_module_info {
  vmpk_text_t name;
  uint32_t abi_version;
  uint32_t function_count, dispatch_count, import_count;
  const uint8_t *digest;         /**< 32 bytes: SHA-256 of the shared module */
  const uint8_t *weights_digest; /**< 32 bytes */
  uint64_t weights_size;         /**< bytes */
  uint32_t weights_missing;      /**< 1: vmpk_module_set_weights is still to be called */
  uint64_t stack_size;           /**< bytes of stack that one invoke or one workgroup needs at most; 0: not known */
} vmpk_module_info_t;

/** A public function. */
typedef struct vmpk_function_info {
  vmpk_text_t name;
  uint32_t dim_count, input_count, output_count;
  uint64_t arena_size; /**< bytes; UINT64_MAX when it depends on the symbolic dims */
} vmpk_function_info_t;

/** A symbolic dim of a function, with inclusive bounds. */
typedef struct vmpk_dim_info {
  vmpk_text_t name;
  int64_t minimum, maximum; /**< maximum is INT64_MAX when unbounded */
} vmpk_dim_info_t;

/** A public tensor. */
typedef struct vmpk_tensor_info {
  vmpk_text_t name;
  uint32_t dtype; /**< VMPK_DTYPE_* */
  uint32_t rank;
  const int64_t *dims; /**< a size, -(1 + k) for the k-th symbolic dim of the function, or VMPK_DIM_COMPUTED */
} vmpk_tensor_info_t;

/** A dispatch of the schedule. */
typedef struct vmpk_dispatch_info {
  vmpk_text_t name;
  vmpk_text_t location; /**< the source nodes */
  uint64_t flops;       /**< 0 when not known */
  uint64_t bytes;       /**< read or written at least once; 0 when not known */
} vmpk_dispatch_info_t;

void vmpk_module_info(const vmpk_module_t *module, vmpk_module_info_t *out);

/** Each of these answers NOT_FOUND, and zeroes *out, when an ordinal or index is too large. */
vmpk_status_t vmpk_module_function(const vmpk_module_t *module, uint32_t function, vmpk_function_info_t *out);
vmpk_status_t vmpk_module_dim(const vmpk_module_t *module, uint32_t function, uint32_t index, vmpk_dim_info_t *out);
vmpk_status_t vmpk_module_input(const vmpk_module_t *module, uint32_t function, uint32_t index,
                                vmpk_tensor_info_t *out);
vmpk_status_t vmpk_module_output(const vmpk_module_t *module, uint32_t function, uint32_t index,
                                 vmpk_tensor_info_t *out);
vmpk_status_t vmpk_module_dispatch(const vmpk_module_t *module, uint32_t dispatch, vmpk_dispatch_info_t *out);

/** The ordinal of the function called `name` (NUL-terminated), or NOT_FOUND. */
vmpk_status_t vmpk_module_find_function(const vmpk_module_t *module, const char *name, uint32_t *function);

/* ---- Instances (vmpk::runtime) ---------------------------------------------------------------------------------- */

/** What one caller needs to run a module: the arena, which grows when the dims ask for it, and the host's services. */
typedef struct vmpk_instance vmpk_instance_t;

/** A dense row-major tensor of the caller's. */
typedef struct vmpk_tensor {
  void *data;     /**< aligned to the element's size; NULL is fine when there are no elements */
  uint64_t size;  /**< bytes at data: for inputs exactly the tensor's, for outputs at least */
  uint32_t dtype; /**< VMPK_DTYPE_*; VMPK_DTYPE_INVALID (0) in an input: as the signature says. Set in outputs */
  uint32_t rank;  /**< set in outputs */
  int64_t dims[VMPK_MAX_RANK]; /**< set in outputs */
} vmpk_tensor_t;

/** Makes an instance. host: NULL for the calling thread alone; else it must outlive the instance. allocator: NULL for
 * malloc. Resolves imports (MISSING_IMPORT names the one); external weights must be set already. */
vmpk_status_t vmpk_instance_create(vmpk_module_t *module, const vmpk_host_t *host, const vmpk_allocator_t *allocator,
                                   vmpk_instance_t **out, vmpk_error_t *error);

/** Frees the arena and drops the instance's reference to its module. */
void vmpk_instance_destroy(vmpk_instance_t *instance);

/** Answers what `function` would give for inputs of these shapes: sets dtype, rank, dims and size of each output and
 * leaves data alone; inputs' data and size are not looked at. Counts must be the signature's. SHAPE_MISMATCH names the
 * tensor and dim when a static dim differs or two dims of one name do; OUT_OF_RANGE when a dim is outside its bounds.
 * arena_size, unless NULL: the bytes of arena an invoke would use. */
vmpk_status_t vmpk_instance_measure(vmpk_instance_t *instance, uint32_t function, const vmpk_tensor_t *inputs,
                                    uint32_t input_count, vmpk_tensor_t *outputs, uint32_t output_count,
                                    uint64_t *arena_size, vmpk_error_t *error);

/** Runs `function`: checks shapes as vmpk_instance_measure does, then sizes and alignments, grows the arena if need
 * be, and computes. Outputs must have room (INVALID_ARGUMENT says how much is missing) and may not overlap another
 * buffer of the call. Their dtype, rank and dims are set; size stays what it was. */
vmpk_status_t vmpk_instance_invoke(vmpk_instance_t *instance, uint32_t function, const vmpk_tensor_t *inputs,
                                   uint32_t input_count, vmpk_tensor_t *outputs, uint32_t output_count,
                                   vmpk_error_t *error);

/** Bytes of arena that the instance holds now. */
uint64_t vmpk_instance_arena_size(const vmpk_instance_t *instance);

/* ---- Hosts ------------------------------------------------------------------------------------------------------ */

/** (vmpk::runtime) Runs everything in the calling thread. Static, for all threads. */
const vmpk_host_t *vmpk_serial_host(void);

/** (vmpk::hosts) Threads that share the work of every dispatch with the thread that calls invoke. Many instances may
 * use one pool at the same time. Idle threads sleep. */
typedef struct vmpk_thread_pool vmpk_thread_pool_t;

/** threads: how many run a dispatch, the caller included (1 starts none); 0: as many as the process may use CPUs.
 * allocator: NULL for malloc. */
vmpk_status_t vmpk_thread_pool_create(uint32_t threads, const vmpk_allocator_t *allocator, vmpk_thread_pool_t **out,
                                      vmpk_error_t *error);

/** Ends the threads. No instance may be running on it. */
void vmpk_thread_pool_destroy(vmpk_thread_pool_t *pool);

/** The host to give to instances; lives as long as the pool. */
const vmpk_host_t *vmpk_thread_pool_host(const vmpk_thread_pool_t *pool);

/** Threads that run a dispatch, the caller included. */
uint32_t vmpk_thread_pool_size(const vmpk_thread_pool_t *pool);

/** (vmpk::hosts) A host around another one that measures each dispatch. It waits for each, so that dispatches do not
 * overlap while they are watched. Any thread. */
typedef struct vmpk_trace vmpk_trace_t;

/** What the dispatches of one ordinal took together. */
typedef struct vmpk_trace_entry {
  uint64_t nanoseconds;
  uint64_t count; /**< calls */
} vmpk_trace_entry_t;

/** inner: the host that does the work, NULL for the serial one; must outlive the trace. dispatch_count: as in
 * vmpk_module_info_t. */
vmpk_status_t vmpk_trace_create(const vmpk_host_t *inner, uint32_t dispatch_count, const vmpk_allocator_t *allocator,
                                vmpk_trace_t **out, vmpk_error_t *error);
void vmpk_trace_destroy(vmpk_trace_t *trace);
const vmpk_host_t *vmpk_trace_host(const vmpk_trace_t *trace);

/** What was measured since the start or the last reset; zeros when `dispatch` is too large. */
vmpk_trace_entry_t vmpk_trace_entry(const vmpk_trace_t *trace, uint32_t dispatch);
void vmpk_trace_reset(vmpk_trace_t *trace);

/* ---- Loaders (vmpk::loaders) ------------------------------------------------------------------------------------ */

/** Opens a shared object by path and calls its `vmpk_query`. Only the code's own file is opened, nothing is written.
 * NOT_FOUND: no such file, or no such symbol in it; CORRUPT: no shared object, or cut short; UNSUPPORTED: for another
 * kind of machine; IO: dlopen refused, with its words. Opening a path again after its
 * file was replaced (by renaming a new one over it) gives the new code, whatever is still loaded. */
vmpk_status_t vmpk_dynamic_module_open(const char *path, const vmpk_allocator_t *allocator, vmpk_module_t **out,
                                       vmpk_error_t *error);

/** Opens the file of `module`, which vmpk_dynamic_module_open made, again as it is now: *out is a new module, beside
 * `module`, whose instances keep the old code until they are gone. On failure `module` is as it was. UNSUPPORTED when
 * `module` did not come from a file. */
vmpk_status_t vmpk_dynamic_module_reload(const vmpk_module_t *module, vmpk_module_t **out, vmpk_error_t *error);

/** Opens the variant for this CPU of a bundle in memory (schemas/bundle.fbs). All bytes are untrusted: offsets are
 * checked, and the SHA-256 of a section before it is used. The code is unpacked to sealed anonymous memory, never to a
 * file. NOT_FOUND: no variant for this CPU, with what there is; CORRUPT: says what is wrong. `bytes` may go away
 * afterwards, unless the bundle holds weights: then they must stay, since weights that are aligned are used in place.
 * When the weights are a file beside the bundle, vmpk_module_set_weights is to be called. */
vmpk_status_t vmpk_dynamic_module_open_bundle(const void *bytes, uint64_t size, const vmpk_allocator_t *allocator,
                                              vmpk_module_t **out, vmpk_error_t *error);

/** What vmpk_dynamic_module_open_async calls once: OK and a module that the callee now owns, or the error. */
typedef void (*vmpk_module_opened_fn)(void *context, vmpk_module_t *module, const vmpk_error_t *error);

/** (Emscripten only) Opens a side module without blocking, which browsers insist on above 4 KB (or 8 MB). `done` is
 * called later, on this thread. path must stay until then. */
void vmpk_dynamic_module_open_async(const char *path, const vmpk_allocator_t *allocator, vmpk_module_opened_fn done,
                                    void *context);

#ifdef __cplusplus
}
#endif
#endif /* VMPK_VMPK_H */
