/* The bundle of schemas/bundle.fbs, in memory and untrusted.
 *
 *   bytes ─► read the tables ─► choose the variant ─► SHA-256 of its section ─► unpack to sealed memory ─► dlopen
 *                                                                                         weights ─► module ─► out
 */
#define _GNU_SOURCE
#include "../src/error.h"
#include "../src/sha256.h"
#include "code.h"
#include "flatbuffer.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>
#ifndef VMPK_WITHOUT_ZSTD
#include <zstd.h>
#endif

/* Field numbers of schemas/bundle.fbs. */
enum { BUNDLE_VERSION, BUNDLE_NAME, BUNDLE_MODULE_DIGEST, BUNDLE_MANIFEST, BUNDLE_VARIANTS, BUNDLE_WEIGHTS };
enum { VARIANT_ABI, VARIANT_LEVEL, VARIANT_COMPRESSION, VARIANT_RAW_SIZE, VARIANT_DATA, VARIANT_SHA256 };
enum { WEIGHTS_NAME, WEIGHTS_SIZE, WEIGHTS_SHA256, WEIGHTS_DATA };
enum { COMPRESSION_NONE, COMPRESSION_ZSTD };

/* The `version` that is read here. */
enum { VERSION = 1 };

/* The largest shared object that is unpacked: what 32-bit file offsets can say. */
#define MAX_RAW_SIZE ((uint64_t)INT32_MAX)

typedef struct bundle {
  vmpk_fb_t fb;
  vmpk_text_t name;
  const uint8_t *module_digest;
  vmpk_fb_vector_t variants;
  int has_weights;
  uint64_t weights_size;
  const uint8_t *weights_sha256;
  vmpk_fb_vector_t weights; /* empty when they are beside the bundle */
} bundle_t;

typedef struct variant {
  vmpk_text_t abi, level;
  uint64_t compression, raw_size;
  vmpk_fb_vector_t data;
  const uint8_t *sha256;
} variant_t;

static vmpk_text_t text_of(const vmpk_fb_t *fb, vmpk_fb_vector_t vector) {
  vmpk_text_t text = {(const char *)fb->bytes + vector.at, vector.count};
  return text;
}

static vmpk_status_t broken(const char *what, vmpk_error_t *error) {
  return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: its %s is missing or leads outside of the bundle", what);
}

/* ---- Reading ---------------------------------------------------------------------------------------------------- */

static vmpk_status_t read_weights(bundle_t *bundle, const vmpk_fb_table_t *root, vmpk_error_t *error) {
  vmpk_fb_table_t weights;
  vmpk_fb_result_t found = vmpk_fb_table(&bundle->fb, root, BUNDLE_WEIGHTS, &weights);
  if (found == VMPK_FB_ABSENT)
    return VMPK_STATUS_OK;
  bundle->has_weights = 1;
  if (found == VMPK_FB_BROKEN ||
      vmpk_fb_scalar(&bundle->fb, &weights, WEIGHTS_SIZE, 8, 0, &bundle->weights_size) == VMPK_FB_BROKEN ||
      vmpk_fb_struct(&bundle->fb, &weights, WEIGHTS_SHA256, 32, &bundle->weights_sha256) != VMPK_FB_PRESENT ||
      vmpk_fb_vector(&bundle->fb, &weights, WEIGHTS_DATA, 1, &bundle->weights) == VMPK_FB_BROKEN)
    return broken("weights", error);
  if (bundle->weights.at && bundle->weights.count != bundle->weights_size)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: size of the weights is %u when it should be %llu",
                     bundle->weights.count, (unsigned long long)bundle->weights_size);
  return VMPK_STATUS_OK;
}

static vmpk_status_t read_bundle(bundle_t *bundle, vmpk_error_t *error) {
  vmpk_fb_table_t root;
  vmpk_fb_vector_t name;
  uint64_t version;
  if (vmpk_fb_root(&bundle->fb, "VMPB", &root) != VMPK_FB_PRESENT)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT,
                     "this is no bundle: %llu bytes whose bytes 4 to 8 are not VMPB, or whose root is outside",
                     (unsigned long long)bundle->fb.size);
  if (vmpk_fb_scalar(&bundle->fb, &root, BUNDLE_VERSION, 4, 1, &version) == VMPK_FB_BROKEN)
    return broken("version", error);
  if (version != VERSION)
    return vmpk_fail(error, VMPK_STATUS_VERSION_MISMATCH,
                     "the bundle has version %llu, this runtime reads version %u: update the runtime or package the "
                     "model again",
                     (unsigned long long)version, (unsigned)VERSION);
  if (vmpk_fb_vector(&bundle->fb, &root, BUNDLE_NAME, 1, &name) != VMPK_FB_PRESENT)
    return broken("name", error);
  if (vmpk_fb_struct(&bundle->fb, &root, BUNDLE_MODULE_DIGEST, 32, &bundle->module_digest) != VMPK_FB_PRESENT)
    return broken("digest", error);
  if (vmpk_fb_vector(&bundle->fb, &root, BUNDLE_VARIANTS, 4, &bundle->variants) != VMPK_FB_PRESENT)
    return broken("list of variants", error);
  bundle->name = text_of(&bundle->fb, name);
  return read_weights(bundle, &root, error);
}

static vmpk_status_t read_variant(const bundle_t *bundle, uint32_t index, variant_t *out, vmpk_error_t *error) {
  const vmpk_fb_t *fb = &bundle->fb;
  vmpk_fb_table_t table;
  vmpk_fb_vector_t abi, level;
  memset(out, 0, sizeof *out);
  if (vmpk_fb_element(fb, &bundle->variants, index, &table) != VMPK_FB_PRESENT ||
      vmpk_fb_vector(fb, &table, VARIANT_ABI, 1, &abi) != VMPK_FB_PRESENT ||
      vmpk_fb_vector(fb, &table, VARIANT_LEVEL, 1, &level) == VMPK_FB_BROKEN ||
      vmpk_fb_scalar(fb, &table, VARIANT_COMPRESSION, 1, COMPRESSION_NONE, &out->compression) == VMPK_FB_BROKEN ||
      vmpk_fb_scalar(fb, &table, VARIANT_RAW_SIZE, 8, 0, &out->raw_size) == VMPK_FB_BROKEN ||
      vmpk_fb_vector(fb, &table, VARIANT_DATA, 1, &out->data) != VMPK_FB_PRESENT ||
      vmpk_fb_struct(fb, &table, VARIANT_SHA256, 32, &out->sha256) != VMPK_FB_PRESENT)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: variant %u is not whole or leads outside of the bundle",
                     index);
  out->abi = text_of(fb, abi);
  out->level = text_of(fb, level);
  return VMPK_STATUS_OK;
}

/* ---- Choosing --------------------------------------------------------------------------------------------------- */

static int same_text(vmpk_text_t text, const char *other) {
  return text.size == strlen(other) && memcmp(text.data, other, text.size) == 0;
}

/* Takes the last variant that this machine runs; fails with the list of what there is. */
static vmpk_status_t choose_variant(const bundle_t *bundle, variant_t *out, vmpk_error_t *error) {
  char list[200] = "none";
  size_t used = 0;
  int found = 0;
  for (uint32_t i = 0; i < bundle->variants.count; ++i) {
    variant_t variant;
    vmpk_status_t status = read_variant(bundle, i, &variant, error);
    if (status != VMPK_STATUS_OK)
      return status;
    if (used < sizeof list)
      used +=
          (size_t)snprintf(list + used, sizeof list - used, "%s%.*s%s%.*s", used ? ", " : "",
                           VMPK_TEXT_ARGS(variant.abi), variant.level.size ? "/" : "", VMPK_TEXT_ARGS(variant.level));
    if (same_text(variant.abi, vmpk_cpu_abi()) && vmpk_cpu_runs(variant.level)) {
      *out = variant;
      found = 1;
    }
  }
  if (found)
    return VMPK_STATUS_OK;
  return vmpk_fail(error, VMPK_STATUS_NOT_FOUND, "bundle: no variant for this machine (%s); it has: %s",
                   vmpk_cpu_abi()[0] ? vmpk_cpu_abi() : "unknown", list);
}

/* ---- Unpacking -------------------------------------------------------------------------------------------------- */

#ifdef VMPK_WITHOUT_ZSTD
static vmpk_status_t zstd_size(const variant_t *variant, const uint8_t *data, uint64_t *size, vmpk_error_t *error) {
  (void)variant, (void)data, (void)size;
  return vmpk_fail(error, VMPK_STATUS_UNSUPPORTED, "bundle: this runtime was built without zstd");
}
static vmpk_status_t zstd_unpack(const variant_t *variant, const uint8_t *data, uint8_t *memory, vmpk_error_t *error) {
  (void)memory;
  return zstd_size(variant, data, NULL, error);
}
#else
/* The size that the frame says it will have; zstd's error values are no sizes that a bundle may have. */
static vmpk_status_t zstd_size(const variant_t *variant, const uint8_t *data, uint64_t *size, vmpk_error_t *error) {
  (void)error;
  *size = ZSTD_getFrameContentSize(data, variant->data.count);
  return VMPK_STATUS_OK;
}
static vmpk_status_t zstd_unpack(const variant_t *variant, const uint8_t *data, uint8_t *memory, vmpk_error_t *error) {
  size_t size = ZSTD_decompress(memory, (size_t)variant->raw_size, data, variant->data.count);
  if (ZSTD_isError(size))
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: the code cannot be unpacked: %s", ZSTD_getErrorName(size));
  if (size != variant->raw_size)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: size of the unpacked code is %llu when it should be %llu",
                     (unsigned long long)size, (unsigned long long)variant->raw_size);
  return VMPK_STATUS_OK;
}
#endif

static vmpk_status_t unpack(const variant_t *variant, const uint8_t *data, uint8_t *memory, vmpk_error_t *error) {
  if (variant->compression == COMPRESSION_ZSTD)
    return zstd_unpack(variant, data, memory, error);
  memcpy(memory, data, variant->data.count);
  return VMPK_STATUS_OK;
}

/* Before any memory is asked for: the section is the one that was packed, and says the size that it will have. */
static vmpk_status_t check_section(const variant_t *variant, const uint8_t *data, vmpk_error_t *error) {
  if (!vmpk_sha256_matches(data, variant->data.count, variant->sha256))
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: the sha-256 of the %.*s section is not the one it should be",
                     VMPK_TEXT_ARGS(variant->abi));
  if (variant->compression != COMPRESSION_ZSTD && variant->compression != COMPRESSION_NONE)
    return vmpk_fail(error, VMPK_STATUS_UNSUPPORTED, "bundle: compression %u is not known to this runtime",
                     (unsigned)variant->compression);
  uint64_t raw_size = variant->data.count;
  if (variant->compression == COMPRESSION_ZSTD) {
    vmpk_status_t status = zstd_size(variant, data, &raw_size, error);
    if (status != VMPK_STATUS_OK)
      return status;
  }
  if (raw_size != variant->raw_size || !raw_size)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: size of the %.*s code is %llu when it should be %llu",
                     VMPK_TEXT_ARGS(variant->abi), (unsigned long long)variant->raw_size, (unsigned long long)raw_size);
  if (raw_size > MAX_RAW_SIZE)
    return vmpk_fail(error, VMPK_STATUS_UNSUPPORTED,
                     "bundle: size of the %.*s code is %llu when it should be at most %llu",
                     VMPK_TEXT_ARGS(variant->abi), (unsigned long long)raw_size, (unsigned long long)MAX_RAW_SIZE);
  return VMPK_STATUS_OK;
}

/* The variant's shared object as a sealed file in memory. */
static vmpk_status_t unpack_to_memory(const bundle_t *bundle, const variant_t *variant, int *fd, vmpk_error_t *error) {
  const uint8_t *data = bundle->fb.bytes + variant->data.at;
  uint8_t *memory;
  *fd = -1;
  vmpk_status_t status = check_section(variant, data, error);
  if (status == VMPK_STATUS_OK)
    status = vmpk_code_create_memory(variant->raw_size, fd, &memory, error);
  if (status != VMPK_STATUS_OK)
    return status;
  status = unpack(variant, data, memory, error);
  vmpk_error_t second;
  vmpk_status_t sealed =
      vmpk_code_seal_memory(*fd, memory, variant->raw_size, status == VMPK_STATUS_OK ? error : &second);
  status = status == VMPK_STATUS_OK ? sealed : status;
  if (status != VMPK_STATUS_OK) {
    close(*fd);
    *fd = -1;
  }
  return status;
}

/* ---- The module ------------------------------------------------------------------------------------------------- */

/* What the bundle says must be what the code says. */
static vmpk_status_t check_module(const bundle_t *bundle, const vmpk_module_t *module, vmpk_error_t *error) {
  vmpk_module_info_t info;
  vmpk_module_info(module, &info);
  if (info.name.size != bundle->name.size || memcmp(info.name.data, bundle->name.data, info.name.size) != 0)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: its name is '%.*s' when it should be '%.*s'",
                     VMPK_TEXT_ARGS(bundle->name), VMPK_TEXT_ARGS(info.name));
  if (memcmp(info.digest, bundle->module_digest, VMPK_SHA256_SIZE) != 0)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: its digest of the shared module is not the code's");
  if (!bundle->has_weights)
    return VMPK_STATUS_OK;
  if (!info.weights_missing)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: it lists weights, but the code has them already");
  if (bundle->weights_size != info.weights_size ||
      memcmp(bundle->weights_sha256, info.weights_digest, VMPK_SHA256_SIZE) != 0)
    return vmpk_fail(error, VMPK_STATUS_CORRUPT, "bundle: its weights are not the ones that the code was made with");
  return VMPK_STATUS_OK;
}

/* Weights are used in place when they are aligned, else copied. */
static vmpk_status_t give_weights(const bundle_t *bundle, vmpk_module_t *module, vmpk_error_t *error) {
  if (!bundle->weights.at)
    return VMPK_STATUS_OK;
  const uint8_t *weights = bundle->fb.bytes + bundle->weights.at;
  if ((uintptr_t)weights % VMPK_ALIGNMENT != 0) {
    module->owned_weights = vmpk_allocator_take(&module->allocator, bundle->weights_size);
    if (!module->owned_weights)
      return vmpk_fail(error, VMPK_STATUS_OUT_OF_MEMORY, "no memory for the weights: %llu bytes",
                       (unsigned long long)bundle->weights_size);
    weights = memcpy(module->owned_weights, weights, (size_t)bundle->weights_size);
  }
  return vmpk_module_set_weights(module, weights, bundle->weights_size, error);
}

vmpk_status_t vmpk_dynamic_module_open_bundle(const void *bytes, uint64_t size, const vmpk_allocator_t *allocator,
                                              vmpk_module_t **out, vmpk_error_t *error) {
  vmpk_error_clear(error);
  if (!out || !bytes)
    return vmpk_fail(error, VMPK_STATUS_INVALID_ARGUMENT, "bytes or out is NULL");
  *out = NULL;
  bundle_t bundle = {.fb = {bytes, size}};
  variant_t variant = {.raw_size = 0};
  vmpk_module_t *module = NULL;
  int fd = -1;
  vmpk_status_t status = read_bundle(&bundle, error);
  if (status == VMPK_STATUS_OK)
    status = choose_variant(&bundle, &variant, error);
  if (status == VMPK_STATUS_OK)
    status = unpack_to_memory(&bundle, &variant, &fd, error);
  if (status == VMPK_STATUS_OK)
    status = vmpk_code_load(fd, "the code in the bundle", NULL, allocator, &module, error);
  if (status == VMPK_STATUS_OK)
    status = check_module(&bundle, module, error);
  if (status == VMPK_STATUS_OK)
    status = give_weights(&bundle, module, error);
  if (status == VMPK_STATUS_OK)
    *out = module;
  else
    vmpk_module_release(module);
  return status;
}
