/* An Emscripten program that runs the demo module in three ways: linked in, as a side module that it waits for, and as
 * a side module that is loaded meanwhile. Prints one line a way; main's arguments are the two side modules. */
#include "vmpk/vmpk.h"

#include <stdio.h>
#include <string.h>

vmpk_status_t demo_query(uint32_t host_abi_version, vmpk_entry_t *out);

static int failures;

static void expect(int condition, const char *what, const char *words) {
  if (!condition)
    printf("FAILED: %s: %s\n", what, words);
  failures += !condition;
}

/* halve: every second element of five. */
static void run(const char *way, vmpk_module_t *module) {
  vmpk_error_t error;
  vmpk_instance_t *instance = NULL;
  vmpk_status_t status = vmpk_instance_create(module, NULL, NULL, &instance, &error);
  expect(status == VMPK_STATUS_OK, way, error.message);
  if (status != VMPK_STATUS_OK)
    return;
  uint32_t function;
  expect(vmpk_module_find_function(module, "halve", &function) == VMPK_STATUS_OK, way, "there is no 'halve'");
  float in[5] = {1, 2, 3, 4, 5}, out[3] = {0};
  vmpk_tensor_t input = {.data = in, .size = sizeof in, .rank = 1, .dims = {5}};
  vmpk_tensor_t output = {.data = out, .size = sizeof out};
  status = vmpk_instance_invoke(instance, function, &input, 1, &output, 1, &error);
  expect(status == VMPK_STATUS_OK, way, error.message);
  expect(out[0] == 1 && out[1] == 3 && out[2] == 5 && output.dims[0] == 3, way, "the result is wrong");
  printf("%s: %g %g %g\n", way, out[0], out[1], out[2]);
  vmpk_instance_destroy(instance);
}

static void opened(void *context, vmpk_module_t *module, const vmpk_error_t *error) {
  expect(module != NULL, context, error->message);
  if (module)
    run(context, module);
  vmpk_module_release(module);
  printf(failures ? "%d failures\n" : "all well\n", failures);
}

static void not_opened(void *context, vmpk_module_t *module, const vmpk_error_t *error) {
  expect(!module && error->status == VMPK_STATUS_IO && strstr(error->message, context), context, error->message);
}

int main(int argc, char **argv) {
  vmpk_error_t error;
  vmpk_module_t *module = NULL;
  expect(argc == 3, "arguments", "two side modules are needed");
  if (argc != 3)
    return 1;
  expect(vmpk_module_create(demo_query, NULL, &module, &error) == VMPK_STATUS_OK, "linked in", error.message);
  run("linked in", module);
  vmpk_module_release(module);

  vmpk_status_t status = vmpk_dynamic_module_open(argv[1], NULL, &module, &error);
  expect(status == VMPK_STATUS_OK, "waited for", error.message);
  if (module)
    run("waited for", module);
  expect(vmpk_dynamic_module_open_bundle("", 0, NULL, &module, &error) == VMPK_STATUS_UNSUPPORTED, "a bundle",
         error.message);
  status = vmpk_dynamic_module_open("nowhere.wasm", NULL, &module, &error);
  expect(status == VMPK_STATUS_IO && !module && strstr(error.message, "nowhere.wasm"), "no file", error.message);

  static char missing[] = "missing.wasm", meanwhile[] = "meanwhile";
  vmpk_dynamic_module_open_async(missing, NULL, not_opened, missing);
  vmpk_dynamic_module_open_async(argv[2], NULL, opened, meanwhile);
  return 0;
}
