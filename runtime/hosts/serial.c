/* The host of one thread: with no dispatch function, a module runs its grids itself. */
#include "vmpk/vmpk.h"

const vmpk_host_t *vmpk_serial_host(void) {
  static const vmpk_host_t host = {.size = sizeof host, .abi_version = VMPK_ABI_VERSION};
  return &host;
}
