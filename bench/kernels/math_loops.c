/* A loop over each f32 function, as generated code has them. */
#include "runtime/kernels/kernels.h"

typedef void (*loop_t)(const float *, float *, int64_t);
#define LOOP(name)                                                                                                     \
  static void loop_##name(const float *restrict x, float *restrict y, int64_t count) {                                 \
    for (int64_t i = 0; i < count; ++i)                                                                                \
      y[i] = vmpk_##name##_f32(x[i]);                                                                                  \
  }
VMPK_MATH_UNARY(LOOP)

void apply(int function, const float *x, float *y, int64_t count);
void apply(int function, const float *x, float *y, int64_t count) {
#define ENTRY(name) loop_##name,
  static const loop_t loops[] = {VMPK_MATH_UNARY(ENTRY)};
  loops[function](x, y, count);
}
