/* Runs the kernels' cases on a machine that has no C library, and prints what the math functions answer as checksums:
 * the same sources give the same bits on all machines that fuse multiply-adds, and on all that do not.
 *
 * Prints lines by the host's write (a system call or a function of the WebAssembly host). */
#include "Cases.h"

#include <stddef.h>

/* ---- The machine ---- */

#if defined(__wasm__)
__attribute__((import_module("env"), import_name("write"))) void hostWrite(const char *text, int size);
__attribute__((export_name("run"))) void run(void);
#else
static long systemCall(long number, long a, long b, long c) {
#if defined(__x86_64__)
  long result;
  __asm__ volatile("syscall" : "=a"(result) : "a"(number), "D"(a), "S"(b), "d"(c) : "rcx", "r11", "memory");
  return result;
#elif defined(__i386__)
  long result;
  __asm__ volatile("int $0x80" : "=a"(result) : "a"(number), "b"(a), "c"(b), "d"(c) : "memory");
  return result;
#elif defined(__aarch64__)
  register long x8 __asm__("x8") = number;
  register long x0 __asm__("x0") = a;
  register long x1 __asm__("x1") = b;
  register long x2 __asm__("x2") = c;
  __asm__ volatile("svc 0" : "+r"(x0) : "r"(x8), "r"(x1), "r"(x2) : "memory");
  return x0;
#else
  register long r7 __asm__("r7") = number;
  register long r0 __asm__("r0") = a;
  register long r1 __asm__("r1") = b;
  register long r2 __asm__("r2") = c;
  __asm__ volatile("svc 0" : "+r"(r0) : "r"(r7), "r"(r1), "r"(r2) : "memory");
  return r0;
#endif
}
#if defined(__x86_64__)
enum { WRITE = 1, EXIT = 60 };
#elif defined(__aarch64__)
enum { WRITE = 64, EXIT = 93 };
#else
enum { WRITE = 4, EXIT = 1 };
#endif
static void hostWrite(const char *text, int size) { systemCall(WRITE, 1, (long)text, size); }
static void run(void);
void _start(void);
#if defined(__i386__) || defined(__x86_64__)
__attribute__((force_align_arg_pointer))
#endif
void _start(void) {
  run();
  systemCall(EXIT, 0, 0, 0);
}
#endif

/* ---- Lines ---- */

static void printLine(const char *name, uint64_t value) {
  char line[64];
  int size = 0;
  for (; *name; ++name)
    line[size++] = *name;
  line[size++] = ' ';
  for (int shift = 60; shift >= 0; shift -= 4)
    line[size++] = "0123456789abcdef"[value >> shift & 15];
  line[size++] = '\n';
  hostWrite(line, size);
}

static uint64_t hash(uint64_t sum, uint64_t value) { return (sum ^ value) * 0x100000001b3u; }

/* All NaNs are one. */
static uint64_t hashFloat(uint64_t sum, float x) {
  return hash(sum, x != x ? 0x7fc00000u : __builtin_bit_cast(uint32_t, x));
}
static uint64_t hashDouble(uint64_t sum, double x) {
  uint64_t bits = x != x ? 0x7ff8000000000000u : __builtin_bit_cast(uint64_t, x);
  return hash(hash(sum, (uint32_t)bits), (uint32_t)(bits >> 32));
}

/* ---- What is run ---- */

static void runCases(void) {
  const kernels_t kernels = {
      vmpk_gemm_f32, vmpk_pack_panels_f32, vmpk_conv_f32, vmpk_depthwise_f32, {vmpk_winograd2_f32, vmpk_winograd4_f32}};
  uint64_t wrong = 0;
  for (int i = 0; i < gemm_case_count; ++i)
    wrong += (uint64_t)checkGemm(&kernels, &gemm_cases[i]);
  printLine("gemm elements wrong", wrong);
  wrong = 0;
  for (int i = 0; i < conv_case_count; ++i)
    wrong += (uint64_t)checkConv(&kernels, &conv_cases[i]);
  printLine("conv elements wrong", wrong);
  wrong = 0;
  for (int i = 0; i < depthwise_case_count; ++i)
    wrong += (uint64_t)checkDepthwise(&kernels, &depthwise_cases[i]);
  printLine("depthwise elements wrong", wrong);
  wrong = 0;
  for (int i = 0; i < winograd_case_count; ++i)
    wrong += (uint64_t)checkWinograd(&kernels, &winograd_cases[i]);
  printLine("winograd elements wrong", wrong);
  printLine("special elements wrong", (uint64_t)checkSpecials(&kernels));
}

static uint32_t state;
static uint32_t draw(void) {
  state = state * 1664525u + 1013904223u;
  return state ^ state >> 15;
}
static uint64_t drawWide(void) {
  uint64_t high = draw();
  return high << 32 | draw();
}
static float drawSingle(void) {
  uint32_t bits = draw();
  return bits & 1 ? __builtin_bit_cast(float, bits) : (float)((int32_t)draw() >> 8) * 0x1p-18f;
}
static double drawDouble(void) {
  uint64_t bits = drawWide();
  return bits & 1 ? __builtin_bit_cast(double, bits) : (double)(int32_t)draw() * 0x1p-26;
}

#define SAMPLES 2000

static void runMath(void) {
#define UNARY(name)                                                                                                    \
  {                                                                                                                    \
    uint64_t single = 0, wide = 0;                                                                                     \
    state = 5;                                                                                                         \
    for (int i = 0; i < SAMPLES; ++i) {                                                                                \
      single = hashFloat(single, vmpk_##name##_f32(drawSingle()));                                                     \
      wide = hashDouble(wide, vmpk_##name##_f64(drawDouble()));                                                        \
    }                                                                                                                  \
    printLine(#name " f32", single);                                                                                   \
    printLine(#name " f64", wide);                                                                                     \
  }
#define BINARY(name)                                                                                                   \
  {                                                                                                                    \
    uint64_t single = 0, wide = 0;                                                                                     \
    state = 6;                                                                                                         \
    for (int i = 0; i < SAMPLES; ++i) {                                                                                \
      float x = drawSingle(), y = drawSingle();                                                                        \
      double a = drawDouble(), b = drawDouble();                                                                       \
      single = hashFloat(single, vmpk_##name##_f32(x, y));                                                             \
      wide = hashDouble(wide, vmpk_##name##_f64(a, b));                                                                \
    }                                                                                                                  \
    printLine(#name " f32", single);                                                                                   \
    printLine(#name " f64", wide);                                                                                     \
  }
  VMPK_MATH_UNARY(UNARY)
  BINARY(pow)
  BINARY(atan2)
  BINARY(fmod)
}

/* Arithmetic that small machines call support functions for. */
static void runArithmetic(void) {
  uint64_t division = 0, shifts = 0, conversions = 0, memory = 0, floats = 0;
  state = 7;
  for (int i = 0; i < SAMPLES; ++i) {
    uint64_t n = drawWide() >> draw() % 64, d = drawWide() >> draw() % 64;
    d = d ? d : 1;
    int64_t sn = (int64_t)n, sd = (int64_t)d;
    division = hash(hash(division, n / d), n % d);
    if (sd != -1)
      division = hash(hash(division, (uint64_t)(sn / sd)), (uint64_t)(sn % sd));
    uint32_t small = (uint32_t)n, by = (uint32_t)d | 1;
    division = hash(hash(division, small / by), small % by);
    if (by != 0xffffffffu)
      division =
          hash(hash(division, (uint64_t)((int32_t)small / (int32_t)by)), (uint64_t)((int32_t)small % (int32_t)by));
    int shift = (int)(draw() % 64);
    shifts = hash(hash(shifts, n << shift), n >> shift);
    shifts = hash(hash(shifts, (uint64_t)(sn >> shift)), n * d);
    conversions = hashDouble(hashFloat(conversions, (float)n), (double)n);
    conversions = hashDouble(hashFloat(conversions, (float)sn), (double)sn);
    double x = (double)(n >> 1) * 0x1p-20, y = (double)(sn >> 2);
    conversions = hash(hash(conversions, (uint64_t)x), (uint64_t)(float)x);
    conversions = hash(hash(conversions, (uint64_t)(int64_t)y), (uint64_t)(int64_t)(float)y);
    float a = drawSingle(), b = drawSingle();
    floats = hashFloat(hashFloat(floats, __builtin_fmodf(a, b)), __builtin_floorf(a));
    floats = hashFloat(hashFloat(floats, __builtin_roundf(a)), __builtin_truncf(b));
    floats = hashFloat(hashFloat(floats, __builtin_rintf(a)), __builtin_ceilf(b));
    double p = drawDouble(), q = drawDouble();
    floats = hashDouble(hashDouble(floats, __builtin_floor(p)), __builtin_round(q));
    floats = hashDouble(hashDouble(floats, __builtin_fma(p, q, p)), __builtin_fmod(p, q));
    floats = hashFloat(floats, __builtin_fmaf(a, b, a));
  }
  printLine("division", division);
  printLine("shifts", shifts);
  printLine("conversions", conversions);
  printLine("floats", floats);
  static unsigned char bytes[300];
  volatile size_t size = 100;
  for (int i = 0; i < 300; ++i)
    bytes[i] = (unsigned char)i;
  for (size_t i = 0; i < 40; ++i) {
    __builtin_memmove(bytes + i, bytes + 20, size + i);
    __builtin_memset(bytes + 200 - i, (int)i, size - i);
    __builtin_memcpy(bytes + 150, bytes + i, size / 4 + i);
  }
  for (int i = 0; i < 300; ++i)
    memory = hash(memory, bytes[i]);
  printLine("memory", memory);
}

#ifndef __wasm__
static
#endif
    void run(void) {
  runCases();
  runMath();
  runArithmetic();
}
