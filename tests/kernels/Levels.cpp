#include "Levels.h"

#define DECLARE_MATH(level, name)                                                                                      \
  extern "C" decltype(vmpk_##name##_f32) level##_vmpk_##name##_f32;                                                    \
  extern "C" decltype(vmpk_##name##_f64) level##_vmpk_##name##_f64;
#define DECLARE(level)                                                                                                 \
  extern "C" decltype(vmpk_gemm_f32) level##_vmpk_gemm_f32;                                                            \
  extern "C" decltype(vmpk_pack_panels_f32) level##_vmpk_pack_panels_f32;                                              \
  extern "C" decltype(vmpk_conv_f32) level##_vmpk_conv_f32;                                                            \
  extern "C" decltype(vmpk_depthwise_f32) level##_vmpk_depthwise_f32;                                                  \
  extern "C" decltype(vmpk_winograd2_f32) level##_vmpk_winograd2_f32;                                                  \
  extern "C" decltype(vmpk_winograd4_f32) level##_vmpk_winograd4_f32;                                                  \
  DECLARE_MATH(level, pow) DECLARE_MATH(level, atan2) DECLARE_MATH(level, fmod)

#define ENTRY(level)                                                                                                   \
  {#level,                                                                                                             \
   {level##_vmpk_gemm_f32,                                                                                             \
    level##_vmpk_pack_panels_f32,                                                                                      \
    level##_vmpk_conv_f32,                                                                                             \
    level##_vmpk_depthwise_f32,                                                                                        \
    {level##_vmpk_winograd2_f32, level##_vmpk_winograd4_f32}},                                                         \
   {VMPK_MATH_UNARY(UNARY)},                                                                                           \
   level##_vmpk_pow_f32,                                                                                               \
   level##_vmpk_pow_f64,                                                                                               \
   level##_vmpk_atan2_f32,                                                                                             \
   level##_vmpk_atan2_f64,                                                                                             \
   level##_vmpk_fmod_f32,                                                                                              \
   level##_vmpk_fmod_f64}

#define UNARY(name) DECLARE_MATH(generic, name)
DECLARE(generic)
VMPK_MATH_UNARY(UNARY)
#undef UNARY
#ifdef __x86_64__
#define UNARY(name) DECLARE_MATH(v2, name) DECLARE_MATH(v3, name) DECLARE_MATH(v4, name)
DECLARE(v2)
DECLARE(v3)
DECLARE(v4)
VMPK_MATH_UNARY(UNARY)
#undef UNARY
#endif

static std::vector<Level> usableLevels() {
  std::vector<Level> usable;
#define UNARY(name) {generic_vmpk_##name##_f32, generic_vmpk_##name##_f64},
  usable.push_back(ENTRY(generic));
#undef UNARY
#ifdef __x86_64__
#define UNARY(name) {v2_vmpk_##name##_f32, v2_vmpk_##name##_f64},
  if (__builtin_cpu_supports("sse4.2"))
    usable.push_back(ENTRY(v2));
#undef UNARY
#define UNARY(name) {v3_vmpk_##name##_f32, v3_vmpk_##name##_f64},
  if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
    usable.push_back(ENTRY(v3));
#undef UNARY
#define UNARY(name) {v4_vmpk_##name##_f32, v4_vmpk_##name##_f64},
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq"))
    usable.push_back(ENTRY(v4));
#undef UNARY
#endif
  return usable;
}

const std::vector<Level> &levels() {
  static const std::vector<Level> usable = usableLevels();
  return usable;
}
