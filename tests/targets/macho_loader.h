/* A loader of Mach-O dylibs and bundles for tests on Linux: runs the iOS code that vmpack makes, under qemu if need be.
 * It takes what a freestanding arm64 or x86-64 image can have: segments, rebases by chained fixups or dyld info, the
 * exports trie. Images that import anything are refused. Not for untrusted files. */
#ifndef VMPACK_TESTS_TARGETS_MACHO_LOADER_H
#define VMPACK_TESTS_TARGETS_MACHO_LOADER_H

#include <stddef.h>

typedef struct {
  unsigned char *file; /* the whole file */
  unsigned char *base; /* where address 0 of the image is */
  const unsigned char *trie;
  size_t trie_size;
} macho_image_t;

/* Whether the file begins like a Mach-O of this machine's width. */
int macho_is_image(const char *path);
/* Loads `path`. Returns NULL, or what is wrong with it. The image stays until the process ends. */
const char *macho_open(const char *path, macho_image_t *image);
/* The address of an exported symbol (with its leading underscore), or NULL. */
void *macho_symbol(const macho_image_t *image, const char *name);

#endif
