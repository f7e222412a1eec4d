// The scalar math of every level against the C library in a wider format, in units in the last place.
#include "Levels.h"

#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <map>
#include <random>

namespace {

using Wide = long double;

/// A function, its reference and the largest error that its definition allows.
struct Row {
  const char *name;
  double bound32, bound64;
  double limit64; ///< |x| up to which the f64 bound holds
  Wide (*reference)(Wide);
};

const double anywhere = std::numeric_limits<double>::infinity();
const Row rows[] = {
    {"exp", 1, 1, anywhere, expl},
    {"exp2", 1.1, 1.1, anywhere, exp2l},
    {"expm1", 1, 2, anywhere, expm1l},
    {"log", 1, 1, anywhere, logl},
    {"log2", 1, 2, anywhere, log2l},
    {"log10", 1, 2, anywhere, log10l},
    {"log1p", 1, 2, anywhere, log1pl},
    {"sin", 1, 1, 0x1p49, sinl},
    {"cos", 1, 1, 0x1p49, cosl},
    {"tan", 1, 3, 0x1p49, tanl},
    {"asin", 1, 2.1, anywhere, asinl},
    {"acos", 1, 2, anywhere, acosl},
    {"atan", 1, 2, anywhere, atanl},
    {"sinh", 1, 2, anywhere, sinhl},
    {"cosh", 1, 2, anywhere, coshl},
    {"tanh", 2, 3, anywhere, tanhl},
    {"asinh", 1, 3, anywhere, asinhl},
    {"acosh", 1, 3, anywhere, acoshl},
    {"atanh", 1, 3, anywhere, atanhl},
    {"erf", 2, 2, anywhere, erfl},
    {"erfc", 1, 5, anywhere, erfcl},
    {"cbrt", 1, 1, anywhere, cbrtl},
    {"rsqrt", 1.5, 1.5, anywhere, [](Wide x) { return 1 / sqrtl(x); }},
};

/// The distance of `got` from `want` in units in the last place of `want`; infinite for a wrong special value.
template <typename T> double ulpError(T got, Wide want) {
  const double wrong = std::numeric_limits<double>::infinity();
  if (std::isnan(want) || std::isnan(got))
    return std::isnan(want) && std::isnan(got) ? 0 : wrong;
  T rounded = static_cast<T>(want);
  if (std::isinf(rounded) || std::isinf(got)) {
    // At the edge either neighbour may do.
    T most = std::numeric_limits<T>::max();
    bool edge = std::isinf(rounded)
                    ? !std::isinf(want) && std::fabs(got) >= most * (1 - 4 * std::numeric_limits<T>::epsilon())
                    : std::fabs(rounded) >= most * (1 - 4 * std::numeric_limits<T>::epsilon());
    return got == rounded ? 0 : edge && std::signbit(got) == std::signbit(rounded) ? 1 : wrong;
  }
  if (want == 0)
    return got == 0 && std::signbit(got) == std::signbit(want) ? 0 : wrong;
  if (got == 0 && std::signbit(got) != std::signbit(want))
    return wrong;
  int exponent = std::max(std::ilogb(want), std::numeric_limits<T>::min_exponent - 1);
  return static_cast<double>(std::fabs(static_cast<Wide>(got) - want) /
                             std::ldexp(Wide(1), exponent - (std::numeric_limits<T>::digits - 1)));
}

template <typename T> T fromBits(uint64_t bits) {
  T value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

/// All exponents of both signs, then the range where most functions do something, then special values.
template <typename T> std::vector<T> samples(int per_exponent, int dense) {
  std::mt19937_64 random(1);
  const int mantissa = std::numeric_limits<T>::digits - 1, exponents = sizeof(T) == 4 ? 255 : 2047;
  std::vector<T> values;
  for (uint64_t sign : {0, 1})
    for (int exponent = 0; exponent < exponents; ++exponent)
      for (int i = 0; i < per_exponent; ++i)
        values.push_back(fromBits<T>(sign << (sizeof(T) * 8 - 1) | uint64_t(exponent) << mantissa |
                                     (random() & ((uint64_t(1) << mantissa) - 1))));
  std::uniform_real_distribution<T> narrow(-2, 2), middle(-30, 30), wide(-800, 800);
  for (int i = 0; i < dense; ++i)
    for (T value : {narrow(random), middle(random), wide(random)})
      values.push_back(value);
  const T infinity = std::numeric_limits<T>::infinity();
  for (T value : {T(0), T(1), T(0.5), T(2), T(3), T(10), T(100), T(1.5), std::numeric_limits<T>::max(),
                  std::numeric_limits<T>::min(), std::numeric_limits<T>::denorm_min(), std::nextafter(T(1), T(0)),
                  std::nextafter(T(1), T(2)), infinity})
    for (T each : {value, -value})
      values.push_back(each);
  values.push_back(std::numeric_limits<T>::quiet_NaN());
  return values;
}

template <typename T> struct Worst {
  double error = 0;
  T at{};
  void see(double each, T x) {
    if (each > error) {
      error = each;
      at = x;
    }
  }
};

TEST(MathTest, UnaryF32) {
  std::vector<float> values = samples<float>(200, 40000);
  for (size_t row = 0; row < std::size(rows); ++row) {
    std::vector<Worst<float>> worst(levels().size());
    for (float x : values) {
      Wide want = rows[row].reference(x);
      if (std::fabs(x) > 0x1p49 && rows[row].limit64 < anywhere)
        continue;
      for (size_t level = 0; level < levels().size(); ++level)
        worst[level].see(ulpError(levels()[level].unary[row].f32(x), want), x);
    }
    std::printf("  %-6s f32", rows[row].name);
    for (size_t level = 0; level < levels().size(); ++level) {
      std::printf("  %s %.3f", levels()[level].name.c_str(), worst[level].error);
      EXPECT_LE(worst[level].error, rows[row].bound32) << rows[row].name << " at " << worst[level].at;
    }
    std::printf("\n");
  }
}

TEST(MathTest, UnaryF64) {
  std::vector<double> values = samples<double>(20, 40000);
  for (size_t row = 0; row < std::size(rows); ++row) {
    std::vector<Worst<double>> worst(levels().size());
    for (double x : values) {
      if (std::fabs(x) > rows[row].limit64 && !std::isinf(x))
        continue;
      Wide want = rows[row].reference(x);
      for (size_t level = 0; level < levels().size(); ++level)
        worst[level].see(ulpError(levels()[level].unary[row].f64(x), want), x);
    }
    std::printf("  %-6s f64", rows[row].name);
    for (size_t level = 0; level < levels().size(); ++level) {
      std::printf("  %s %.3f", levels()[level].name.c_str(), worst[level].error);
      EXPECT_LE(worst[level].error, rows[row].bound64) << rows[row].name << " at " << worst[level].at;
    }
    std::printf("\n");
  }
}

TEST(MathTest, HugeAnglesStayBounded) {
  for (const Level &level : levels())
    for (double x : {0x1p50, 0x1p60, 1e30, 1e300, -1e308}) {
      EXPECT_LE(std::fabs(level.unary[7].f64(x)), 1.0 + 1e-15);
      EXPECT_LE(std::fabs(level.unary[8].f64(x)), 1.0 + 1e-15);
    }
}

/// Special pairs, and random ones of exponents that matter.
template <typename T> std::vector<std::pair<T, T>> pairs(int count, int exponent_x, int exponent_y) {
  std::mt19937_64 random(2);
  std::uniform_real_distribution<T> mantissa(1, 2);
  auto draw = [&](int range) {
    T value = std::ldexp(mantissa(random), int(random() % (2 * range)) - range);
    return random() & 1 ? -value : value;
  };
  std::vector<std::pair<T, T>> values;
  for (int i = 0; i < count; ++i) {
    values.emplace_back(draw(exponent_x), draw(exponent_y));
    values.emplace_back(std::fabs(draw(exponent_x)), draw(exponent_y));
    values.emplace_back(draw(4), T(int(random() % 200) - 100));
    values.emplace_back(1 + draw(4) / 4096, draw(10));
  }
  const T infinity = std::numeric_limits<T>::infinity(), nan = std::numeric_limits<T>::quiet_NaN();
  std::vector<T> special = {0, 1, 2, 3, T(0.5), T(1.5), 4, infinity, std::numeric_limits<T>::max(), T(1e-40), nan};
  for (T x : special)
    for (T y : special)
      for (int signs = 0; signs < 4; ++signs)
        values.emplace_back(signs & 1 ? -x : x, signs & 2 ? -y : y);
  return values;
}

template <typename T, typename Reference>
void checkBinary(const char *name, const std::vector<std::pair<T, T>> &values, double bound, Reference reference,
                 T (*Level::*function)(T, T)) {
  std::vector<Worst<std::pair<T, T>>> worst(levels().size());
  for (auto [x, y] : values) {
    Wide want = reference(x, y);
    for (size_t level = 0; level < levels().size(); ++level)
      worst[level].see(ulpError((levels()[level].*function)(x, y), want), {x, y});
  }
  std::printf("  %-6s %s", name, sizeof(T) == 4 ? "f32" : "f64");
  for (size_t level = 0; level < levels().size(); ++level) {
    std::printf("  %s %.3f", levels()[level].name.c_str(), worst[level].error);
    EXPECT_LE(worst[level].error, bound) << name << " of " << worst[level].at.first << ", " << worst[level].at.second;
  }
  std::printf("\n");
}

TEST(MathTest, Binary) {
  auto power = [](Wide x, Wide y) { return powl(x, y); };
  auto angle = [](Wide y, Wide x) { return atan2l(y, x); };
  auto rest = [](auto x, auto y) { return Wide(std::fmod(x, y)); };
  checkBinary<float>("pow", pairs<float>(50000, 20, 8), 1, power, &Level::pow32);
  checkBinary<double>("pow", pairs<double>(50000, 20, 9), 1.1, power, &Level::pow64);
  checkBinary<float>("atan2", pairs<float>(50000, 126, 126), 1, angle, &Level::atan232);
  checkBinary<double>("atan2", pairs<double>(50000, 1020, 1020), 2, angle, &Level::atan264);
  checkBinary<double>("atan2", pairs<double>(50000, 4, 4), 2, angle, &Level::atan264);
  checkBinary<float>("fmod", pairs<float>(20000, 126, 126), 0, rest, &Level::fmod32);
  checkBinary<float>("fmod", pairs<float>(20000, 30, 4), 0, rest, &Level::fmod32);
  checkBinary<double>("fmod", pairs<double>(5000, 1020, 1020), 0, rest, &Level::fmod64);
  checkBinary<double>("fmod", pairs<double>(20000, 60, 4), 0, rest, &Level::fmod64);
}

} // namespace
