/// The levels that this machine can run, each a copy of the kernels whose symbols carry the level's prefix.
#ifndef VMPACK_TESTS_KERNELS_LEVELS_H
#define VMPACK_TESTS_KERNELS_LEVELS_H

#include "Cases.h"

#include <string>
#include <vector>

struct UnaryMath {
  float (*f32)(float);
  double (*f64)(double);
};

struct Level {
  std::string name;
  kernels_t kernels;
  std::vector<UnaryMath> unary; ///< in the order of VMPK_MATH_UNARY
  float (*pow32)(float, float);
  double (*pow64)(double, double);
  float (*atan232)(float, float);
  double (*atan264)(double, double);
  float (*fmod32)(float, float);
  double (*fmod64)(double, double);
};

/// The levels of the build that the CPU can run.
const std::vector<Level> &levels();

#endif // VMPACK_TESTS_KERNELS_LEVELS_H
