/* Status codes and dtypes in words. */
#include "vmpk/vmpk.h"

const char *vmpk_status_text(vmpk_status_t status) {
  switch (status) {
  case VMPK_STATUS_OK:
    return "ok";
  case VMPK_STATUS_INVALID_ARGUMENT:
    return "invalid argument";
  case VMPK_STATUS_OUT_OF_MEMORY:
    return "out of memory";
  case VMPK_STATUS_VERSION_MISMATCH:
    return "version mismatch";
  case VMPK_STATUS_CORRUPT:
    return "corrupt";
  case VMPK_STATUS_NOT_FOUND:
    return "not found";
  case VMPK_STATUS_UNSUPPORTED:
    return "unsupported";
  case VMPK_STATUS_IO:
    return "input/output error";
  case VMPK_STATUS_OUT_OF_RANGE:
    return "out of range";
  case VMPK_STATUS_SHAPE_MISMATCH:
    return "shape mismatch";
  case VMPK_STATUS_MISSING_IMPORT:
    return "missing import";
  case VMPK_STATUS_INTERNAL:
    return "internal error";
  default:
    return "unknown status";
  }
}

/* One row a dtype, by its value. */
static const struct {
  const char *text;
  uint32_t size;
} dtypes[] = {
    [VMPK_DTYPE_INVALID] = {"invalid", 0}, [VMPK_DTYPE_F32] = {"f32", 4},   [VMPK_DTYPE_F64] = {"f64", 8},
    [VMPK_DTYPE_F16] = {"f16", 2},         [VMPK_DTYPE_BF16] = {"bf16", 2}, [VMPK_DTYPE_I8] = {"i8", 1},
    [VMPK_DTYPE_I16] = {"i16", 2},         [VMPK_DTYPE_I32] = {"i32", 4},   [VMPK_DTYPE_I64] = {"i64", 8},
    [VMPK_DTYPE_U8] = {"u8", 1},           [VMPK_DTYPE_U16] = {"u16", 2},   [VMPK_DTYPE_U32] = {"u32", 4},
    [VMPK_DTYPE_U64] = {"u64", 8},         [VMPK_DTYPE_BOOL] = {"bool", 1},
};

uint64_t vmpk_dtype_size(uint32_t dtype) { return dtype < sizeof dtypes / sizeof dtypes[0] ? dtypes[dtype].size : 0; }

const char *vmpk_dtype_text(uint32_t dtype) {
  return dtypes[dtype < sizeof dtypes / sizeof dtypes[0] ? dtype : VMPK_DTYPE_INVALID].text;
}
