/* vmpk/abi.h - the interface between a compiled module and the host that runs it.
 *
 *      host                                   module (linked in, dlopen'ed, wasm or JIT: the host cannot tell)
 *   ---------                                 ------------------------------------------------------------------
 *   vmpk_query(version, &entry)       ---->   fills entry: table, weights, measure, invoke
 *   entry.measure(f, dims, &measured) ---->   arena bytes and output dims for these symbolic dims
 *   entry.invoke(&call)               ---->   the schedule of function f
 *      host->dispatch(grid, args)     <----     runs fn(args, x, y, z) for every workgroup, on any thread
 *      host->barrier()                <----     all grids before it are done when it returns
 *
 * Rules that every struct here keeps:
 *  - one layout on all targets: pointers sit in 8-byte slots, structs are 8-aligned, everything is little-endian;
 *  - structs that may grow start with their size in bytes and grow only at the end;
 *  - the module table holds offsets, never pointers, and may be read as untrusted input.
 *
 * Threads: a module has no mutable state. measure and invoke may run concurrently with different calls (own arena and
 * outputs each). Memory: the host owns every byte; a module keeps no pointer after invoke returns.
 *
 * This header is compiled three ways: by hosts (C11 or C++17), by vmpack to bitcode (VMPK_MODULE_SIDE: the inline
 * accessors of the generated code), and by tests that compare each field's offset between compilers. */
#ifndef VMPK_ABI_H
#define VMPK_ABI_H

#include <stdint.h>

#include "vmpk/status.h"

#ifdef __cplusplus
extern "C" {
#endif

/** The ABI version this header describes. A module answers vmpk_query only for versions it can serve. */
#define VMPK_ABI_VERSION 1u

/** A pointer (or function pointer) in an 8-byte slot. On 32-bit hosts the upper half must be zero. */
#define VMPK_SLOT(declaration, name)                                                                                   \
  union {                                                                                                              \
    declaration;                                                                                                       \
    uint64_t name##_slot __attribute__((aligned(8)));                                                                  \
  }

/* ---- Data types ------------------------------------------------------------------------------------------------- */

/** Element types. Values are pinned; bool is one byte, 0 or 1. Sub-byte types are not addressable and have no value. */
enum {
  VMPK_DTYPE_INVALID = 0,
  VMPK_DTYPE_F32 = 1,
  VMPK_DTYPE_F64 = 2,
  VMPK_DTYPE_F16 = 3,
  VMPK_DTYPE_BF16 = 4,
  VMPK_DTYPE_I8 = 5,
  VMPK_DTYPE_I16 = 6,
  VMPK_DTYPE_I32 = 7,
  VMPK_DTYPE_I64 = 8,
  VMPK_DTYPE_U8 = 9,
  VMPK_DTYPE_U16 = 10,
  VMPK_DTYPE_U32 = 11,
  VMPK_DTYPE_U64 = 12,
  VMPK_DTYPE_BOOL = 13
};

/** The highest rank of a public tensor. */
#define VMPK_MAX_RANK 16

/** The alignment in bytes that modules assume of the arena and the weights. Inputs and outputs need only the alignment
 * of their element type. */
#define VMPK_ALIGNMENT 64u

/* ---- The call --------------------------------------------------------------------------------------------------- */

/** A dense row-major tensor's memory. Inputs are only read. An output may not overlap another buffer of the call. */
typedef struct vmpk_buffer {
  VMPK_SLOT(void *data, data);
  uint64_t size; /**< bytes; exactly the product of the dims and the element size */
} vmpk_buffer_t;

/** One 8-byte operand of a dispatch: a pointer or an integer. */
typedef union vmpk_operand {
  void *pointer;
  int64_t integer;
  uint64_t slot __attribute__((aligned(8)));
} vmpk_operand_t;

/** What one grid of workgroups works on. Lives in the arena until the next barrier. */
typedef struct vmpk_dispatch {
  uint32_t ordinal;           /**< row in the table's dispatches: its name, for traces and failures */
  uint32_t operand_count;     /**< how many operands follow */
  vmpk_operand_t operands[1]; /**< bindings, then constants; really operand_count long */
} vmpk_dispatch_t;

/** Runs one workgroup. Pure but for the outputs among its bindings. */
typedef vmpk_status_t (*vmpk_dispatch_fn)(const vmpk_dispatch_t *args, uint32_t x, uint32_t y, uint32_t z);

/** What the host offers to a module. Any function may be NULL: the module then does the simple thing itself. */
typedef struct vmpk_host {
  uint32_t size;        /**< sizeof(vmpk_host_t) as the host was compiled */
  uint32_t abi_version; /**< VMPK_ABI_VERSION as the host was compiled */
  VMPK_SLOT(void *context, context);
  /** Runs fn for every (x, y, z) below the grid's extents, in any order, on any threads, now or at the latest by the
   * next barrier. Returns the first failure or OK. NULL: the module runs the grid in the calling thread. */
  VMPK_SLOT(vmpk_status_t (*dispatch)(const struct vmpk_host *host, vmpk_dispatch_fn fn, const vmpk_dispatch_t *args,
                                      uint32_t grid_x, uint32_t grid_y, uint32_t grid_z),
            dispatch);
  /** Returns when every grid handed to `dispatch` before has ended: the first failure among them or OK. */
  VMPK_SLOT(vmpk_status_t (*barrier)(const struct vmpk_host *host), barrier);
  /** Memory that the plan could not foresee (data-dependent sizes): VMPK_ALIGNMENT-aligned, or NULL. */
  VMPK_SLOT(void *(*allocate)(const struct vmpk_host *host, uint64_t size), allocate);
  VMPK_SLOT(void (*release)(const struct vmpk_host *host, void *memory), release);
  /** Resolves an import by name (UTF-8, not NUL-terminated) and version, or answers NULL. */
  VMPK_SLOT(void *(*resolve)(const struct vmpk_host *host, const char *name, uint64_t name_size, uint32_t version),
            resolve);
  /** Told of a failure inside the module before its status is returned. */
  VMPK_SLOT(void (*report)(const struct vmpk_host *host, vmpk_status_t status, uint32_t dispatch_ordinal), report);
} vmpk_host_t;

/** Everything one invocation may touch. The runtime fills it after it has checked shapes and sizes. */
typedef struct vmpk_call {
  uint32_t size;     /**< sizeof(vmpk_call_t) as the host was compiled */
  uint32_t function; /**< ordinal in the table's functions */
  VMPK_SLOT(const vmpk_host_t *host, host);
  VMPK_SLOT(uint8_t *arena, arena);                  /**< VMPK_ALIGNMENT-aligned; contents undefined before and after */
  uint64_t arena_size;                               /**< at least what measure answered for these dims */
  VMPK_SLOT(const uint8_t *weights, weights);        /**< VMPK_ALIGNMENT-aligned */
  VMPK_SLOT(const vmpk_operand_t *imports, imports); /**< resolved, in the table's order */
  VMPK_SLOT(const int64_t *dims, dims);              /**< one value a symbolic dim of the function */
  VMPK_SLOT(const vmpk_buffer_t *inputs, inputs);    /**< in the signature's order */
  VMPK_SLOT(const vmpk_buffer_t *outputs, outputs);  /**< in the signature's order */
} vmpk_call_t;

/** What measure answers. */
typedef struct vmpk_measured {
  uint32_t size; /**< set by the host before */
  uint32_t reserved;
  uint64_t arena_size;
  /** The dims of all outputs, flattened in the signature's order; the host supplies the room, or NULL. */
  VMPK_SLOT(int64_t *output_dims, output_dims);
} vmpk_measured_t;

/** What a module shows of itself. */
typedef struct vmpk_entry {
  uint32_t size;        /**< before: the bytes the host has room for; after: the bytes that were filled */
  uint32_t abi_version; /**< the module's */
  VMPK_SLOT(const uint8_t *table, table); /**< the module table, 8-aligned, constant */
  uint64_t table_size;
  VMPK_SLOT(const uint8_t *weights, weights); /**< embedded weights, or NULL: the host supplies them */
  VMPK_SLOT(vmpk_status_t (*measure)(uint32_t function, const int64_t *dims, vmpk_measured_t *out), measure);
  VMPK_SLOT(vmpk_status_t (*invoke)(const vmpk_call_t *call), invoke);
} vmpk_entry_t;

/** The one exported symbol of a module (`vmpk_<name>_query` when linked statically, `vmpk_query` in .so and wasm).
 * Fills *out. Thread-safe. Returns VERSION_MISMATCH when it cannot serve host_abi_version: out->abi_version then says
 * which it can, and nothing else is filled; INVALID_ARGUMENT when out is NULL or too small for abi version 1. */
typedef vmpk_status_t (*vmpk_query_fn)(uint32_t host_abi_version, vmpk_entry_t *out);

/* ---- The module table ------------------------------------------------------------------------------------------- */

/** `count` elements at `offset` bytes from the table's start. For text: UTF-8 bytes, no NUL. Elements are 8-aligned
 * but for text. */
typedef struct vmpk_span {
  uint32_t offset;
  uint32_t count;
} vmpk_span_t;

#define VMPK_TABLE_MAGIC "VMPKTBL1"

/** A dim entry: a size >= 0; or -(1 + k), the k-th symbolic dim of the function; or VMPK_DIM_COMPUTED. */
#define VMPK_DIM_COMPUTED INT64_MIN /* an expression of the symbolic dims: measure evaluates it (outputs only) */

/** The table's first bytes. */
typedef struct vmpk_table_header {
  char magic[8];        /**< VMPK_TABLE_MAGIC */
  uint32_t size;        /**< of this header */
  uint32_t abi_version; /**< the module's */
  uint64_t table_size;  /**< of the whole table */
  uint8_t digest[32];   /**< SHA-256 of the shared module's bitcode */
  uint8_t weights_digest[32];
  uint64_t weights_size;
  uint64_t stack_size;    /**< bytes of stack one invoke or one workgroup needs at most on this target; 0: not known */
  vmpk_span_t name;       /**< of the module */
  vmpk_span_t functions;  /**< of vmpk_table_function_t */
  vmpk_span_t dispatches; /**< of vmpk_table_dispatch_t */
  vmpk_span_t imports;    /**< of vmpk_table_import_t */
  uint32_t function_size, dispatch_size, import_size, tensor_size, dim_size; /**< strides of the arrays in this table */
  uint32_t reserved;
} vmpk_table_header_t;

/** A public function. */
typedef struct vmpk_table_function {
  vmpk_span_t name;
  vmpk_span_t dims;    /**< of vmpk_table_dim_t: the symbolic dims */
  vmpk_span_t inputs;  /**< of vmpk_table_tensor_t */
  vmpk_span_t outputs; /**< of vmpk_table_tensor_t */
  uint64_t arena_size; /**< bytes, or UINT64_MAX: measure computes it from the dims */
} vmpk_table_function_t;

/** A symbolic dim. */
typedef struct vmpk_table_dim {
  vmpk_span_t name;
  int64_t minimum, maximum; /**< inclusive; maximum INT64_MAX when unbounded */
} vmpk_table_dim_t;

/** A public tensor. */
typedef struct vmpk_table_tensor {
  vmpk_span_t name;
  vmpk_span_t dims; /**< of int64_t dim entries; count is the rank */
  uint32_t dtype;   /**< VMPK_DTYPE_* */
  uint32_t reserved;
} vmpk_table_tensor_t;

/** A dispatch: what its ordinal means to people. */
typedef struct vmpk_table_dispatch {
  vmpk_span_t name;     /**< e.g. "conv_12" */
  vmpk_span_t location; /**< the source nodes, e.g. "Conv_5+Relu_6" */
  uint64_t flops;       /**< multiply and add count as two; 0 when not known or dependent on dynamic dims */
  uint64_t bytes;       /**< bytes read and written at least once; 0 when not known */
} vmpk_table_dispatch_t;

/** What only the host can give. */
typedef struct vmpk_table_import {
  vmpk_span_t name;
  uint32_t version;
  uint32_t required; /**< 0: the module copes with NULL */
} vmpk_table_import_t;

/* ---- The module's side ------------------------------------------------------------------------------------------
 * Accessors that generated code calls. They are compiled to bitcode once and inlined, so no generated code knows the
 * layout of a struct. Hosts do not see them. */
#ifdef VMPK_MODULE_SIDE
#ifndef VMPK_ACCESSOR /* vmpack itself gives them external linkage, to link generated code with them */
#define VMPK_ACCESSOR static inline __attribute__((always_inline, unused))
#define VMPK_SHARED_ACCESSOR static inline __attribute__((unused)) /* one copy serves all calls */
#endif

VMPK_ACCESSOR uint8_t *vmpk_abi_arena(const vmpk_call_t *call) { return call->arena; }
VMPK_ACCESSOR const uint8_t *vmpk_abi_weights(const vmpk_call_t *call) { return call->weights; }
VMPK_ACCESSOR int64_t vmpk_abi_dim(const int64_t *dims, int64_t index) { return dims[index]; }
VMPK_ACCESSOR const int64_t *vmpk_abi_dims(const vmpk_call_t *call) { return call->dims; }
VMPK_ACCESSOR void *vmpk_abi_input(const vmpk_call_t *call, int64_t index) { return call->inputs[index].data; }
VMPK_ACCESSOR void *vmpk_abi_output(const vmpk_call_t *call, int64_t index) { return call->outputs[index].data; }
VMPK_ACCESSOR uint32_t vmpk_abi_function(const vmpk_call_t *call) { return call->function; }

VMPK_ACCESSOR void *vmpk_abi_binding(const vmpk_dispatch_t *args, int64_t index) {
  return args->operands[index].pointer;
}
VMPK_ACCESSOR int64_t vmpk_abi_constant(const vmpk_dispatch_t *args, int64_t index) {
  return args->operands[index].integer;
}
/** Starts the argument block of a dispatch at `memory` (in the arena, 8-aligned). */
VMPK_ACCESSOR vmpk_dispatch_t *vmpk_abi_begin_dispatch(uint8_t *memory, uint32_t ordinal, uint32_t operand_count) {
  vmpk_dispatch_t *args = (vmpk_dispatch_t *)memory;
  args->ordinal = ordinal;
  args->operand_count = operand_count;
  return args;
}
VMPK_ACCESSOR void vmpk_abi_set_binding(vmpk_dispatch_t *args, int64_t index, void *pointer) {
  args->operands[index].slot = 0; /* the upper half, where pointers are narrower than the slot */
  args->operands[index].pointer = pointer;
}
VMPK_ACCESSOR void vmpk_abi_set_constant(vmpk_dispatch_t *args, int64_t index, int64_t value) {
  args->operands[index].integer = value;
}

/** Runs a grid: on the host, or here when the host leaves it to the module. */
VMPK_SHARED_ACCESSOR vmpk_status_t vmpk_abi_dispatch(const vmpk_call_t *call, vmpk_dispatch_fn fn,
                                                     const vmpk_dispatch_t *args, uint32_t grid_x, uint32_t grid_y,
                                                     uint32_t grid_z) {
  const vmpk_host_t *host = call->host;
  if (host && host->dispatch)
    return host->dispatch(host, fn, args, grid_x, grid_y, grid_z);
  for (uint32_t z = 0; z < grid_z; ++z)
    for (uint32_t y = 0; y < grid_y; ++y)
      for (uint32_t x = 0; x < grid_x; ++x) {
        vmpk_status_t status = fn(args, x, y, z);
        if (status != VMPK_STATUS_OK)
          return status;
      }
  return VMPK_STATUS_OK;
}
VMPK_SHARED_ACCESSOR vmpk_status_t vmpk_abi_barrier(const vmpk_call_t *call) {
  const vmpk_host_t *host = call->host;
  return host && host->dispatch && host->barrier ? host->barrier(host) : VMPK_STATUS_OK;
}
VMPK_ACCESSOR void vmpk_abi_set_arena_size(vmpk_measured_t *out, int64_t size) { out->arena_size = (uint64_t)size; }
VMPK_ACCESSOR void vmpk_abi_set_output_dim(vmpk_measured_t *out, int64_t index, int64_t value) {
  if (out->output_dims)
    out->output_dims[index] = value;
}
#endif /* VMPK_MODULE_SIDE */

#ifdef __cplusplus
}
#endif
#endif /* VMPK_ABI_H */
