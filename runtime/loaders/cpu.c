/* Which code this machine runs. */
#include "code.h"

#include <string.h>

#if defined(__aarch64__) || defined(__arm__)
#include <sys/auxv.h>
#endif

const char *vmpk_cpu_abi(void) {
#if defined(__aarch64__)
  return "arm64-v8a";
#elif defined(__arm__)
  return "armeabi-v7a";
#elif defined(__x86_64__)
  return "x86_64";
#elif defined(__i386__)
  return "x86";
#else
  return "";
#endif
}

/* Levels of the kernel library, with what each needs to be run. */
static int runs_v2(void) {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("sse4.2") && __builtin_cpu_supports("popcnt");
#else
  return 0;
#endif
}
/* __builtin_cpu_supports also asks the operating system (XGETBV) about the registers. */
static int runs_v3(void) {
#if defined(__x86_64__) || defined(__i386__)
  return runs_v2() && __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
#else
  return 0;
#endif
}
static int runs_v4(void) {
#if defined(__x86_64__) || defined(__i386__)
  return runs_v3() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
#else
  return 0;
#endif
}
static int runs_armv8(void) {
#if defined(__aarch64__)
  return 1;
#else
  return 0;
#endif
}
static int runs_dotprod(void) {
#if defined(__aarch64__)
  return (getauxval(AT_HWCAP) >> 20 & 1) != 0; /* HWCAP_ASIMDDP */
#else
  return 0;
#endif
}
static int runs_i8mm(void) {
#if defined(__aarch64__)
  return runs_dotprod() && (getauxval(AT_HWCAP2) >> 13 & 1) != 0; /* HWCAP2_I8MM */
#else
  return 0;
#endif
}
static int runs_armv7(void) {
#if defined(__arm__)
  return (getauxval(AT_HWCAP) >> 12 & 1) != 0; /* HWCAP_NEON */
#else
  return 0;
#endif
}
static int runs_x86(void) {
#if defined(__x86_64__) || defined(__i386__)
  return __builtin_cpu_supports("ssse3");
#else
  return 0;
#endif
}

int vmpk_cpu_runs(vmpk_text_t level) {
  static const struct {
    const char *level;
    int (*runs)(void);
  } rows[] = {{"x86", runs_x86},
              {"x86-64-v2", runs_v2},
              {"x86-64-v3", runs_v3},
              {"x86-64-v4", runs_v4},
              {"armv7", runs_armv7},
              {"armv8.0", runs_armv8},
              {"armv8.2+dotprod", runs_dotprod},
              {"armv8.6+i8mm", runs_i8mm}};
  if (!level.size)
    return 1;
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; ++i)
    if (strlen(rows[i].level) == level.size && memcmp(rows[i].level, level.data, level.size) == 0)
      return rows[i].runs();
  return 0;
}
