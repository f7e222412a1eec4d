/* Runs one model on raw input files through vmpk/vmpk.h, whatever way it was delivered:
 *
 *   host WORK MODULE INPUT...        INPUT is FILE:DIM,DIM,... (FILE: for a scalar), in the signature's order
 *
 * MODULE is the path of a shared object or of a bundle (.vmpb). When compiled with -DVMPK_HOST_QUERY=vmpk_NAME_query,
 * the model is linked in and MODULE is ignored. Writes WORK/output_I.raw and prints a line for each:
 * `output I TYPE DIM,DIM,... FILE` (`-` for no dims). Exits 1 with words on standard error when something fails. */
#include "vmpk/vmpk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#ifdef VMPK_HOST_QUERY
vmpk_status_t VMPK_HOST_QUERY(uint32_t host_abi_version, vmpk_entry_t *out);
#endif

static void fail(const char *what, const char *why) {
  fprintf(stderr, "%s: %s\n", what, why);
  exit(1);
}

static void check(vmpk_status_t status, const vmpk_error_t *error, const char *what) {
  if (status != VMPK_STATUS_OK)
    fail(what, error->message);
}

static void *allocate(uint64_t size) {
  void *memory = aligned_alloc(VMPK_ALIGNMENT, (size + VMPK_ALIGNMENT) / VMPK_ALIGNMENT * VMPK_ALIGNMENT);
  if (!memory)
    fail("memory", "none left");
  return memory;
}

static void *read_file(const char *path, uint64_t *size) {
  FILE *file = fopen(path, "rb");
  if (!file || fseek(file, 0, SEEK_END) != 0)
    fail(path, "cannot be read");
  long end = ftell(file);
  void *bytes = allocate((uint64_t)end);
  rewind(file);
  if (fread(bytes, 1, (size_t)end, file) != (size_t)end)
    fail(path, "is cut off");
  fclose(file);
  *size = (uint64_t)end;
  return bytes;
}

static vmpk_module_t *open_module(const char *path) {
  vmpk_module_t *module = NULL;
  vmpk_error_t error;
#if defined(VMPK_HOST_QUERY)
  check(vmpk_module_create(VMPK_HOST_QUERY, NULL, &module, &error), &error, path);
#else
#ifdef VMPK_HOST_BUNDLES
  if (strlen(path) > 5 && strcmp(path + strlen(path) - 5, ".vmpb") == 0) {
    uint64_t size;
    void *bytes = read_file(path, &size); /* stays: the weights may be used in place */
    check(vmpk_dynamic_module_open_bundle(bytes, size, NULL, &module, &error), &error, path);
    return module;
  }
#endif
  check(vmpk_dynamic_module_open(path, NULL, &module, &error), &error, path);
#endif
  return module;
}

/* External weights: the file that VMPK_WEIGHTS names. */
static void add_weights(vmpk_module_t *module) {
  vmpk_module_info_t info;
  vmpk_module_info(module, &info);
  if (!info.weights_missing)
    return;
  const char *path = getenv("VMPK_WEIGHTS");
  if (!path)
    fail("weights", "the module needs them, and VMPK_WEIGHTS is not set");
  uint64_t size;
  void *bytes = read_file(path, &size);
  vmpk_error_t error;
  check(vmpk_module_set_weights(module, bytes, size, &error), &error, path);
}

static vmpk_tensor_t read_input(char *argument) {
  vmpk_tensor_t tensor;
  memset(&tensor, 0, sizeof tensor);
  char *dims = strrchr(argument, ':');
  if (!dims)
    fail(argument, "has no dims");
  *dims++ = '\0';
  for (char *dim = strtok(dims, ","); dim && tensor.rank < VMPK_MAX_RANK; dim = strtok(NULL, ","))
    tensor.dims[tensor.rank++] = strtoll(dim, NULL, 10);
  tensor.data = read_file(argument, &tensor.size);
  return tensor;
}

static void write_output(const char *work, uint32_t index, const vmpk_tensor_t *tensor) {
  char path[4096];
  snprintf(path, sizeof path, "%s/output_%u.raw", work, (unsigned)index);
  FILE *file = fopen(path, "wb");
  if (!file || fwrite(tensor->data, 1, (size_t)tensor->size, file) != (size_t)tensor->size || fclose(file) != 0)
    fail(path, "cannot be written");
  printf("output %u %s ", (unsigned)index, vmpk_dtype_text(tensor->dtype));
  for (uint32_t i = 0; i < tensor->rank; ++i)
    printf("%s%lld", i ? "," : "", (long long)tensor->dims[i]);
  printf("%s %s\n", tensor->rank ? "" : "-", path);
}

int main(int argc, char **argv) {
  if (argc < 3)
    fail("usage", "host WORK MODULE INPUT...");
  vmpk_module_t *module = open_module(argv[2]);
  add_weights(module);
  vmpk_error_t error;
  vmpk_instance_t *instance = NULL;
  check(vmpk_instance_create(module, NULL, NULL, &instance, &error), &error, "instance");

  vmpk_function_info_t function;
  check(vmpk_module_function(module, 0, &function), &error, "function");
  uint32_t count = (uint32_t)argc - 3;
  vmpk_tensor_t *inputs = calloc(count + 1, sizeof *inputs);
  vmpk_tensor_t *outputs = calloc(function.output_count + 1, sizeof *outputs);
  if (!inputs || !outputs)
    fail("memory", "none left");
  for (uint32_t i = 0; i < count; ++i)
    inputs[i] = read_input(argv[3 + i]);
  check(vmpk_instance_measure(instance, 0, inputs, count, outputs, function.output_count, NULL, &error), &error,
        "measure");
  for (uint32_t i = 0; i < function.output_count; ++i)
    outputs[i].data = allocate(outputs[i].size);
  check(vmpk_instance_invoke(instance, 0, inputs, count, outputs, function.output_count, &error), &error, "invoke");
  for (uint32_t i = 0; i < function.output_count; ++i)
    write_output(argv[1], i, &outputs[i]);

  vmpk_instance_destroy(instance);
  vmpk_module_release(module);
  for (uint32_t i = 0; i < count; ++i)
    free(inputs[i].data);
  for (uint32_t i = 0; i < function.output_count; ++i)
    free(outputs[i].data);
  free(inputs);
  free(outputs);
  return 0;
}
