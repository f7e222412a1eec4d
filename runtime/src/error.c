#include "error.h"

#include <stdarg.h>
#include <stdio.h>

void vmpk_error_clear(vmpk_error_t *error) {
  if (!error)
    return;
  error->status = VMPK_STATUS_OK;
  error->message[0] = 0;
}

vmpk_status_t vmpk_fail(vmpk_error_t *error, vmpk_status_t status, const char *format, ...) {
  if (!error)
    return status;
  error->status = status;
  va_list arguments;
  va_start(arguments, format);
  if (vsnprintf(error->message, sizeof error->message, format, arguments) < 0)
    error->message[0] = 0;
  va_end(arguments);
  return status;
}
