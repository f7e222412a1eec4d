/* run_query FILE SYMBOL FUNCTION WEIGHTS [DIM...] < inputs > outputs
 *
 * Opens an ELF .so (dlopen) or a Mach-O dylib (macho_loader.h), takes the query SYMBOL and runs function number
 * FUNCTION of the module on the raw inputs, one after the other in the signature's order; writes the raw outputs
 * likewise. WEIGHTS is a file, or "-" when they are embedded. Only the ABI header is used: no runtime library. */
#include "macho_loader.h"

#include "vmpk/abi.h"

#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void fail(const char *format, ...) {
  va_list arguments;
  va_start(arguments, format);
  fputs("run_query: ", stderr);
  vfprintf(stderr, format, arguments);
  fputc('\n', stderr);
  va_end(arguments);
  exit(1);
}

static vmpk_query_fn open_query(const char *path, const char *symbol) {
  vmpk_query_fn query = NULL;
  void *address = NULL;
  if (macho_is_image(path)) {
    macho_image_t image;
    char mangled[512];
    const char *problem = macho_open(path, &image);
    if (problem)
      fail("%s: %s", path, problem);
    snprintf(mangled, sizeof(mangled), "_%s", symbol);
    address = macho_symbol(&image, mangled);
  } else {
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    if (!library)
      fail("%s", dlerror());
    address = dlsym(library, symbol);
  }
  if (!address)
    fail("%s exports no %s", path, symbol);
  memcpy(&query, &address, sizeof(query));
  return query;
}

static void *allocate(uint64_t size) {
  void *memory = aligned_alloc(VMPK_ALIGNMENT, (size / VMPK_ALIGNMENT + 1) * VMPK_ALIGNMENT);
  if (!memory)
    fail("no memory for %llu bytes", (unsigned long long)size);
  return memory;
}

static uint64_t dtype_size(uint32_t dtype) {
  switch (dtype) {
  case VMPK_DTYPE_F64:
  case VMPK_DTYPE_I64:
  case VMPK_DTYPE_U64:
    return 8;
  case VMPK_DTYPE_F32:
  case VMPK_DTYPE_I32:
  case VMPK_DTYPE_U32:
    return 4;
  case VMPK_DTYPE_F16:
  case VMPK_DTYPE_BF16:
  case VMPK_DTYPE_I16:
  case VMPK_DTYPE_U16:
    return 2;
  default:
    return 1;
  }
}

/* Buffers for `count` tensors. `measured`: dims of all of them, one after the other, where the table does not know. */
static vmpk_buffer_t *make_buffers(const uint8_t *table, vmpk_span_t tensors, uint32_t stride, const int64_t *dims,
                                   const int64_t *measured) {
  vmpk_buffer_t *buffers = calloc(tensors.count + 1, sizeof(*buffers));
  for (uint32_t i = 0; i < tensors.count; ++i) {
    const vmpk_table_tensor_t *tensor = (const void *)(table + tensors.offset + (size_t)i * stride);
    const int64_t *entries = (const void *)(table + tensor->dims.offset);
    uint64_t size = dtype_size(tensor->dtype);
    for (uint32_t axis = 0; axis < tensor->dims.count; ++axis) {
      int64_t dim = entries[axis];
      if (measured)
        dim = *measured++;
      else if (dim < 0)
        dim = dims[-1 - dim];
      size *= (uint64_t)dim;
    }
    buffers[i].data = allocate(size);
    buffers[i].size = size;
  }
  return buffers;
}

static uint8_t *read_weights(const char *path, uint64_t size) {
  uint8_t *bytes = allocate(size);
  FILE *file = fopen(path, "rb");
  if (!file || fread(bytes, 1, size, file) != size)
    fail("cannot read %llu bytes of weights from %s", (unsigned long long)size, path);
  fclose(file);
  return bytes;
}

int main(int argc, char **argv) {
  if (argc < 5)
    fail("run_query FILE SYMBOL FUNCTION WEIGHTS [DIM...] < inputs > outputs");
  int64_t dims[64] = {0}, output_dims[VMPK_MAX_RANK * 64] = {0};
  for (int i = 5; i < argc && i < 69; ++i)
    dims[i - 5] = atoll(argv[i]);
  vmpk_entry_t entry;
  memset(&entry, 0, sizeof(entry));
  entry.size = sizeof(entry);
  vmpk_status_t status = open_query(argv[1], argv[2])(VMPK_ABI_VERSION, &entry);
  if (status != VMPK_STATUS_OK)
    fail("the query answers %d", (int)status);
  const vmpk_table_header_t *header = (const void *)entry.table;
  uint32_t ordinal = (uint32_t)atoi(argv[3]);
  if (ordinal >= header->functions.count)
    fail("there are %u functions", (unsigned)header->functions.count);
  const vmpk_table_function_t *function =
      (const void *)(entry.table + header->functions.offset + (size_t)ordinal * header->function_size);
  vmpk_measured_t measured;
  memset(&measured, 0, sizeof(measured));
  measured.size = sizeof(measured);
  measured.output_dims = output_dims;
  status = entry.measure(ordinal, dims, &measured);
  if (status != VMPK_STATUS_OK)
    fail("measure answers %d", (int)status);

  vmpk_call_t call;
  memset(&call, 0, sizeof(call));
  call.size = sizeof(call);
  call.function = ordinal;
  call.arena = allocate(measured.arena_size);
  call.arena_size = measured.arena_size;
  call.weights = strcmp(argv[4], "-") == 0 ? entry.weights : read_weights(argv[4], header->weights_size);
  call.dims = dims;
  vmpk_buffer_t *inputs = make_buffers(entry.table, function->inputs, header->tensor_size, dims, NULL);
  vmpk_buffer_t *outputs = make_buffers(entry.table, function->outputs, header->tensor_size, dims, output_dims);
  call.inputs = inputs;
  call.outputs = outputs;
  for (uint32_t i = 0; i < function->inputs.count; ++i)
    if (fread(inputs[i].data, 1, inputs[i].size, stdin) != inputs[i].size)
      fail("input %u wants %llu bytes", (unsigned)i, (unsigned long long)inputs[i].size);
  status = entry.invoke(&call);
  if (status != VMPK_STATUS_OK)
    fail("invoke answers %d", (int)status);
  for (uint32_t i = 0; i < function->outputs.count; ++i)
    if (fwrite(outputs[i].data, 1, outputs[i].size, stdout) != outputs[i].size)
      fail("cannot write output %u", (unsigned)i);
  return 0;
}
