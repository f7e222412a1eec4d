/* abi_layout.c - the layout of every struct of abi.h, as numbers. Compiled (never run) for each target's C compiler,
 * and as C++: whoever fails here would read a module wrongly. The numbers are ABI version 1: they never change. */
#include "vmpk/abi.h"

#include <stddef.h>

#ifdef __cplusplus
#define ASSERT(condition, message) static_assert(condition, message)
#define ALIGNMENT_OF(type) alignof(type)
#else
#define ASSERT(condition, message) _Static_assert(condition, message)
#define ALIGNMENT_OF(type) _Alignof(type)
#endif

#define SIZE(type, size) ASSERT(sizeof(type) == (size), "sizeof " #type)
#define ALIGNMENT(type) ASSERT(ALIGNMENT_OF(type) == 8, "alignof " #type)
#define FIELD(type, field, offset) ASSERT(offsetof(type, field) == (offset), #type "." #field)

SIZE(vmpk_buffer_t, 16);
ALIGNMENT(vmpk_buffer_t);
FIELD(vmpk_buffer_t, data, 0);
FIELD(vmpk_buffer_t, size, 8);

SIZE(vmpk_operand_t, 8);
ALIGNMENT(vmpk_operand_t);
FIELD(vmpk_operand_t, pointer, 0);
FIELD(vmpk_operand_t, integer, 0);
FIELD(vmpk_operand_t, slot, 0);

SIZE(vmpk_dispatch_t, 16);
ALIGNMENT(vmpk_dispatch_t);
FIELD(vmpk_dispatch_t, ordinal, 0);
FIELD(vmpk_dispatch_t, operand_count, 4);
FIELD(vmpk_dispatch_t, operands, 8);

SIZE(vmpk_host_t, 64);
ALIGNMENT(vmpk_host_t);
FIELD(vmpk_host_t, size, 0);
FIELD(vmpk_host_t, abi_version, 4);
FIELD(vmpk_host_t, context, 8);
FIELD(vmpk_host_t, dispatch, 16);
FIELD(vmpk_host_t, barrier, 24);
FIELD(vmpk_host_t, allocate, 32);
FIELD(vmpk_host_t, release, 40);
FIELD(vmpk_host_t, resolve, 48);
FIELD(vmpk_host_t, report, 56);

SIZE(vmpk_call_t, 72);
ALIGNMENT(vmpk_call_t);
FIELD(vmpk_call_t, size, 0);
FIELD(vmpk_call_t, function, 4);
FIELD(vmpk_call_t, host, 8);
FIELD(vmpk_call_t, arena, 16);
FIELD(vmpk_call_t, arena_size, 24);
FIELD(vmpk_call_t, weights, 32);
FIELD(vmpk_call_t, imports, 40);
FIELD(vmpk_call_t, dims, 48);
FIELD(vmpk_call_t, inputs, 56);
FIELD(vmpk_call_t, outputs, 64);

SIZE(vmpk_measured_t, 24);
ALIGNMENT(vmpk_measured_t);
FIELD(vmpk_measured_t, size, 0);
FIELD(vmpk_measured_t, reserved, 4);
FIELD(vmpk_measured_t, arena_size, 8);
FIELD(vmpk_measured_t, output_dims, 16);

SIZE(vmpk_entry_t, 48);
ALIGNMENT(vmpk_entry_t);
FIELD(vmpk_entry_t, size, 0);
FIELD(vmpk_entry_t, abi_version, 4);
FIELD(vmpk_entry_t, table, 8);
FIELD(vmpk_entry_t, table_size, 16);
FIELD(vmpk_entry_t, weights, 24);
FIELD(vmpk_entry_t, measure, 32);
FIELD(vmpk_entry_t, invoke, 40);

SIZE(vmpk_span_t, 8);
FIELD(vmpk_span_t, offset, 0);
FIELD(vmpk_span_t, count, 4);

SIZE(vmpk_table_header_t, 160);
FIELD(vmpk_table_header_t, magic, 0);
FIELD(vmpk_table_header_t, size, 8);
FIELD(vmpk_table_header_t, abi_version, 12);
FIELD(vmpk_table_header_t, table_size, 16);
FIELD(vmpk_table_header_t, digest, 24);
FIELD(vmpk_table_header_t, weights_digest, 56);
FIELD(vmpk_table_header_t, weights_size, 88);
FIELD(vmpk_table_header_t, stack_size, 96);
FIELD(vmpk_table_header_t, name, 104);
FIELD(vmpk_table_header_t, functions, 112);
FIELD(vmpk_table_header_t, dispatches, 120);
FIELD(vmpk_table_header_t, imports, 128);
FIELD(vmpk_table_header_t, function_size, 136);
FIELD(vmpk_table_header_t, dispatch_size, 140);
FIELD(vmpk_table_header_t, import_size, 144);
FIELD(vmpk_table_header_t, tensor_size, 148);
FIELD(vmpk_table_header_t, dim_size, 152);
FIELD(vmpk_table_header_t, reserved, 156);

SIZE(vmpk_table_function_t, 40);
FIELD(vmpk_table_function_t, name, 0);
FIELD(vmpk_table_function_t, dims, 8);
FIELD(vmpk_table_function_t, inputs, 16);
FIELD(vmpk_table_function_t, outputs, 24);
FIELD(vmpk_table_function_t, arena_size, 32);

SIZE(vmpk_table_dim_t, 24);
FIELD(vmpk_table_dim_t, name, 0);
FIELD(vmpk_table_dim_t, minimum, 8);
FIELD(vmpk_table_dim_t, maximum, 16);

SIZE(vmpk_table_tensor_t, 24);
FIELD(vmpk_table_tensor_t, name, 0);
FIELD(vmpk_table_tensor_t, dims, 8);
FIELD(vmpk_table_tensor_t, dtype, 16);
FIELD(vmpk_table_tensor_t, reserved, 20);

SIZE(vmpk_table_dispatch_t, 32);
FIELD(vmpk_table_dispatch_t, name, 0);
FIELD(vmpk_table_dispatch_t, location, 8);
FIELD(vmpk_table_dispatch_t, flops, 16);
FIELD(vmpk_table_dispatch_t, bytes, 24);

SIZE(vmpk_table_import_t, 16);
FIELD(vmpk_table_import_t, name, 0);
FIELD(vmpk_table_import_t, version, 8);
FIELD(vmpk_table_import_t, required, 12);

ASSERT(VMPK_ABI_VERSION == 1, "these are the numbers of version 1");
ASSERT(VMPK_STATUS_INTERNAL == 11 && VMPK_DTYPE_BOOL == 13, "pinned values");
