/* SHA-256 (FIPS 180-4). */
#ifndef VMPK_SRC_SHA256_H
#define VMPK_SRC_SHA256_H

#include <stdint.h>

#define VMPK_SHA256_SIZE 32

/** The digest of `size` bytes. */
void vmpk_sha256(const void *bytes, uint64_t size, uint8_t digest[VMPK_SHA256_SIZE]);

/** 1 when the digest of `size` bytes is `expected`. */
int vmpk_sha256_matches(const void *bytes, uint64_t size, const uint8_t expected[VMPK_SHA256_SIZE]);

#endif /* VMPK_SRC_SHA256_H */
