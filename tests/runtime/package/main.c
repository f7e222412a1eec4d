/* Uses something of each library. The module does not exist: the error is the answer that is looked for. */
#include <vmpk/vmpk.h>

#include <stdio.h>
#include <string.h>

int main(void) {
  vmpk_error_t error;
  vmpk_thread_pool_t *pool = NULL;
  vmpk_module_t *module = NULL;
  if (vmpk_thread_pool_create(2, NULL, &pool, &error) != VMPK_STATUS_OK)
    return 1;
  vmpk_thread_pool_destroy(pool);
  vmpk_status_t status = vmpk_dynamic_module_open("nowhere.so", NULL, &module, &error);
  printf("%s\n", error.message);
  return !(status == VMPK_STATUS_NOT_FOUND && !module && strstr(error.message, "nowhere.so"));
}
