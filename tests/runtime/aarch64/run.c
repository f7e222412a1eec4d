/* Runs the demo from each file named, on three threads: bundles (.vmpb) by one loader, shared objects by the other. */
#include "vmpk/vmpk.h"

#include <stdio.h>
#include <string.h>

static vmpk_status_t open_module(const char *path, vmpk_module_t **module, vmpk_error_t *error) {
  static _Alignas(VMPK_ALIGNMENT) unsigned char bytes[1 << 20];
  const char *end = strrchr(path, '.');
  if (!end || strcmp(end, ".vmpb") != 0)
    return vmpk_dynamic_module_open(path, NULL, module, error);
  FILE *file = fopen(path, "rb");
  size_t size = file ? fread(bytes, 1, sizeof bytes, file) : 0;
  if (file)
    fclose(file);
  return vmpk_dynamic_module_open_bundle(bytes, size, NULL, module, error);
}

/* affine of two rows: max(x · W + b, 0) * mask, reckoned by hand. */
static vmpk_status_t run(vmpk_instance_t *instance, int *right, vmpk_error_t *error) {
  float x[8] = {1, 0, 0, 0, 2, -1, 0.5f, 1}, y[6] = {0};
  int32_t mask[2] = {1, 2};
  const float expected[6] = {1, 0, 3, 0, 2 * 1, 2 * 4.625f};
  vmpk_tensor_t inputs[2] = {{.data = x, .size = sizeof x, .rank = 2, .dims = {2, 4}},
                             {.data = mask, .size = sizeof mask, .rank = 1, .dims = {2}}};
  vmpk_tensor_t output = {.data = y, .size = sizeof y};
  vmpk_status_t status = vmpk_instance_invoke(instance, 0, inputs, 2, &output, 1, error);
  *right = memcmp(y, expected, sizeof y) == 0;
  if (status == VMPK_STATUS_OK && !*right)
    printf("%g %g %g  %g %g %g\n", y[0], y[1], y[2], y[3], y[4], y[5]);
  return status;
}

int main(int count, char **paths) {
  vmpk_error_t error;
  vmpk_thread_pool_t *pool = NULL;
  int failures = vmpk_thread_pool_create(3, NULL, &pool, &error) != VMPK_STATUS_OK;
  for (int i = 1; i < count && !failures; ++i) {
    vmpk_module_t *module = NULL;
    vmpk_instance_t *instance = NULL;
    int right = 0;
    vmpk_status_t status = open_module(paths[i], &module, &error);
    if (status == VMPK_STATUS_OK)
      status = vmpk_instance_create(module, vmpk_thread_pool_host(pool), NULL, &instance, &error);
    if (status == VMPK_STATUS_OK)
      status = run(instance, &right, &error);
    printf("%s: %s\n", paths[i], status != VMPK_STATUS_OK ? error.message : right ? "right" : "wrong");
    failures += !right;
    vmpk_instance_destroy(instance);
    vmpk_module_release(module);
  }
  vmpk_thread_pool_destroy(pool);
  return failures || count < 2;
}
