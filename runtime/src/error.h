/* Failing with words. */
#ifndef VMPK_SRC_ERROR_H
#define VMPK_SRC_ERROR_H

#include "vmpk/vmpk.h"

/** Fills *error (may be NULL) and answers `status`, so that callers can return it. */
vmpk_status_t vmpk_fail(vmpk_error_t *error, vmpk_status_t status, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/** Empties *error (may be NULL). */
void vmpk_error_clear(vmpk_error_t *error);

/** A vmpk_text_t as the two arguments of %.*s; long ones are cut, since they are untrusted. */
#define VMPK_TEXT_ARGS(text) (int)((text).size < 80 ? (text).size : 80), (text).data

#endif /* VMPK_SRC_ERROR_H */
