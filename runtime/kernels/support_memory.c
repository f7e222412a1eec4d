/* Copies and fills that LLVM calls for. Compiled with -fno-builtin: the loops stay loops. */
#include <stddef.h>
#include <stdint.h>

void *memcpy(void *restrict to, const void *restrict from, size_t size);
void *memmove(void *to, const void *from, size_t size);
void *memset(void *to, int value, size_t size);
int memcmp(const void *a, const void *b, size_t size);

/* 16 bytes at any address; two registers or one. */
typedef uint64_t vmpk_chunk __attribute__((vector_size(16), aligned(1), may_alias));
#define CHUNK sizeof(vmpk_chunk)

void *memcpy(void *restrict to, const void *restrict from, size_t size) {
  unsigned char *out = to;
  const unsigned char *in = from;
  for (; size >= CHUNK; size -= CHUNK, out += CHUNK, in += CHUNK)
    *(vmpk_chunk *)out = *(const vmpk_chunk *)in;
  for (; size; --size)
    *out++ = *in++;
  return to;
}

void *memmove(void *to, const void *from, size_t size) {
  unsigned char *out = to;
  const unsigned char *in = from;
  if ((uintptr_t)out - (uintptr_t)in >= size) {
    for (; size >= CHUNK; size -= CHUNK, out += CHUNK, in += CHUNK)
      *(vmpk_chunk *)out = *(const vmpk_chunk *)in;
    for (; size; --size)
      *out++ = *in++;
    return to;
  }
  for (; size >= CHUNK; size -= CHUNK)
    *(vmpk_chunk *)(out + size - CHUNK) = *(const vmpk_chunk *)(in + size - CHUNK);
  for (; size; --size)
    out[size - 1] = in[size - 1];
  return to;
}

void *memset(void *to, int value, size_t size) {
  unsigned char *out = to;
  uint64_t byte = (unsigned char)value * 0x0101010101010101u;
  for (; size >= CHUNK; size -= CHUNK, out += CHUNK)
    *(vmpk_chunk *)out = (vmpk_chunk){byte, byte};
  for (; size; --size)
    *out++ = (unsigned char)value;
  return to;
}

int memcmp(const void *a, const void *b, size_t size) {
  const unsigned char *left = a, *right = b;
  for (; size; --size, ++left, ++right)
    if (*left != *right)
      return *left - *right;
  return 0;
}

#ifdef __arm__
/* ARM's names; a fill takes the size before the value. The numbers promise alignment. */
#define VMPK_AEABI __attribute__((pcs("aapcs")))
#define VMPK_AEABI_MEMORY(suffix)                                                                                      \
  VMPK_AEABI void __aeabi_memcpy##suffix(void *restrict to, const void *restrict from, size_t size);                   \
  VMPK_AEABI void __aeabi_memcpy##suffix(void *restrict to, const void *restrict from, size_t size) {                  \
    memcpy(to, from, size);                                                                                            \
  }                                                                                                                    \
  VMPK_AEABI void __aeabi_memmove##suffix(void *to, const void *from, size_t size);                                    \
  VMPK_AEABI void __aeabi_memmove##suffix(void *to, const void *from, size_t size) { memmove(to, from, size); }        \
  VMPK_AEABI void __aeabi_memset##suffix(void *to, size_t size, int value);                                            \
  VMPK_AEABI void __aeabi_memset##suffix(void *to, size_t size, int value) { memset(to, value, size); }                \
  VMPK_AEABI void __aeabi_memclr##suffix(void *to, size_t size);                                                       \
  VMPK_AEABI void __aeabi_memclr##suffix(void *to, size_t size) { memset(to, 0, size); }
VMPK_AEABI_MEMORY()
VMPK_AEABI_MEMORY(4)
VMPK_AEABI_MEMORY(8)
#endif
