// The support functions against the C library and the compiler's own arithmetic.
#include <gtest/gtest.h>

#include <cmath>
#include <cstring>
#include <limits>
#include <random>

extern "C" {
void *rt_memcpy(void *, const void *, size_t);
void *rt_memmove(void *, const void *, size_t);
void *rt_memset(void *, int, size_t);
int rt_memcmp(const void *, const void *, size_t);
uint64_t rt___udivdi3(uint64_t, uint64_t);
uint64_t rt___umoddi3(uint64_t, uint64_t);
int64_t rt___divdi3(int64_t, int64_t);
int64_t rt___moddi3(int64_t, int64_t);
uint64_t rt___udivmoddi4(uint64_t, uint64_t, uint64_t *);
int64_t rt___divmoddi4(int64_t, int64_t, int64_t *);
uint64_t rt___muldi3(uint64_t, uint64_t);
uint64_t rt___ashldi3(uint64_t, int);
uint64_t rt___lshrdi3(uint64_t, int);
int64_t rt___ashrdi3(int64_t, int);
unsigned __int128 rt___multi3(unsigned __int128, unsigned __int128);
double rt___floatundidf(uint64_t), rt___floatdidf(int64_t);
float rt___floatundisf(uint64_t), rt___floatdisf(int64_t);
uint64_t rt___fixunsdfdi(double), rt___fixunssfdi(float);
int64_t rt___fixdfdi(double), rt___fixsfdi(float);
float rt___gnu_h2f_ieee(uint16_t);
uint16_t rt___gnu_f2h_ieee(float);
double rt_fma(double, double, double), rt_ldexp(double, int), rt___powidf2(double, int);
float rt_fmaf(float, float, float), rt_ldexpf(float, int), rt___powisf2(float, int);
#define UNARY(name)                                                                                                    \
  double rt_##name(double);                                                                                            \
  float rt_##name##f(float);
#define ROUNDINGS(X) X(rint) X(nearbyint) X(floor) X(ceil) X(trunc) X(round)
ROUNDINGS(UNARY)
UNARY(roundeven)
#define BINARY(name)                                                                                                   \
  double rt_##name(double, double);                                                                                    \
  float rt_##name##f(float, float);
BINARY(fmod) BINARY(fmin) BINARY(fmax) BINARY(fminimum) BINARY(fmaximum)
}

namespace {

std::mt19937_64 random64(7);

uint64_t drawInteger() {
  static const uint64_t special[] = {0,          1,           2,         0x7fffffff, 0x80000000,
                                     0xffffffff, 0x100000000, INT64_MAX, 1ull << 63, ~0ull};
  return random64() % 8 == 0 ? special[random64() % std::size(special)] : random64() >> random64() % 64;
}

template <typename T, typename Bits> T drawFloat() {
  Bits bits = Bits(random64());
  T value;
  std::memcpy(&value, &bits, sizeof value);
  if (random64() % 3 == 0)
    value = std::ldexp(T(int64_t(random64()) >> 12), -52 + int(random64() % 30));
  if (random64() % 16 == 0)
    value = T(int(random64() % 64) - 32) / 4;
  return value;
}
double drawDouble() { return drawFloat<double, uint64_t>(); }
float drawSingle() { return drawFloat<float, uint32_t>(); }

template <typename T> testing::AssertionResult same(T got, T want) {
  bool equal = std::isnan(want) ? std::isnan(got) : got == want && std::signbit(got) == std::signbit(want);
  return equal ? testing::AssertionSuccess() : testing::AssertionFailure() << got << " instead of " << want;
}

TEST(SupportTest, Memory) {
  unsigned char from[200], to[200], want[200];
  for (int i = 0; i < 200; ++i)
    from[i] = static_cast<unsigned char>(i * 7);
  for (size_t size = 0; size < 100; ++size)
    for (size_t offset = 0; offset < 17; offset += 3) {
      std::memset(to, 1, sizeof to);
      std::memset(want, 1, sizeof want);
      EXPECT_EQ(rt_memcpy(to + offset, from + 5, size), to + offset);
      std::memcpy(want + offset, from + 5, size);
      EXPECT_EQ(std::memcmp(to, want, sizeof to), 0);
      EXPECT_EQ(rt_memset(to + offset, 0x1ab, size), to + offset);
      std::memset(want + offset, 0x1ab, size);
      EXPECT_EQ(std::memcmp(to, want, sizeof to), 0);
      for (size_t target : {size_t(20), 20 + offset, 20 - offset}) {
        std::memcpy(to, from, sizeof to);
        std::memcpy(want, from, sizeof want);
        rt_memmove(to + target, to + 20, size);
        std::memmove(want + target, want + 20, size);
        EXPECT_EQ(std::memcmp(to, want, sizeof to), 0) << size << " to " << target;
      }
    }
  EXPECT_LT(rt_memcmp("abc", "abd", 3), 0);
  EXPECT_GT(rt_memcmp("ab\xff", "ab\x01", 3), 0);
  EXPECT_EQ(rt_memcmp("abc", "abd", 2), 0);
}

TEST(SupportTest, Division) {
  for (int i = 0; i < 200000; ++i) {
    uint64_t n = drawInteger(), d = drawInteger(), rest;
    if (!d)
      continue;
    ASSERT_EQ(rt___udivdi3(n, d), n / d);
    ASSERT_EQ(rt___umoddi3(n, d), n % d);
    ASSERT_EQ(rt___udivmoddi4(n, d, &rest), n / d);
    ASSERT_EQ(rest, n % d);
    int64_t sn = int64_t(n), sd = int64_t(d), signed_rest;
    if (sn == INT64_MIN && sd == -1)
      continue;
    ASSERT_EQ(rt___divdi3(sn, sd), sn / sd);
    ASSERT_EQ(rt___moddi3(sn, sd), sn % sd);
    ASSERT_EQ(rt___divmoddi4(sn, sd, &signed_rest), sn / sd);
    ASSERT_EQ(signed_rest, sn % sd);
  }
}

TEST(SupportTest, ProductsAndShifts) {
  for (int i = 0; i < 100000; ++i) {
    uint64_t a = drawInteger(), b = drawInteger();
    unsigned __int128 wide = (unsigned __int128)a << 64 | b, other = (unsigned __int128)drawInteger() << 64 | a;
    ASSERT_EQ(rt___muldi3(a, b), a * b);
    ASSERT_TRUE(rt___multi3(wide, other) == wide * other);
    int by = int(random64() % 64);
    ASSERT_EQ(rt___ashldi3(a, by), a << by);
    ASSERT_EQ(rt___lshrdi3(a, by), a >> by);
    ASSERT_EQ(rt___ashrdi3(int64_t(a), by), int64_t(a) >> by);
  }
}

TEST(SupportTest, IntegerConversions) {
  for (int i = 0; i < 200000; ++i) {
    uint64_t n = drawInteger();
    ASSERT_EQ(rt___floatundidf(n), double(n)) << n;
    ASSERT_EQ(rt___floatundisf(n), float(n)) << n;
    ASSERT_EQ(rt___floatdidf(int64_t(n)), double(int64_t(n))) << n;
    ASSERT_EQ(rt___floatdisf(int64_t(n)), float(int64_t(n))) << n;
    double x = std::ldexp(double(random64() >> 11), -int(random64() % 70));
    if (x < 0x1p64) {
      ASSERT_EQ(rt___fixunsdfdi(x), uint64_t(x)) << x;
      ASSERT_EQ(rt___fixunssfdi(float(x / 2)), uint64_t(float(x / 2))) << x;
    }
    for (double each : {x / 2, -x / 2})
      if (std::fabs(each) < 0x1p62) {
        ASSERT_EQ(rt___fixdfdi(each), int64_t(each)) << each;
        ASSERT_EQ(rt___fixsfdi(float(each)), int64_t(float(each))) << each;
      }
  }
}

TEST(SupportTest, HalfPrecision) {
  // Finite values from their definition; each float between two of them goes to the nearer, or to the even one.
  auto value = [](int bits) {
    int exponent = bits >> 10;
    return exponent ? std::ldexp(double(1024 + (bits & 1023)), exponent - 25) : std::ldexp(double(bits), -24);
  };
  for (int bits = 0; bits < 0x7c00; ++bits) {
    EXPECT_EQ(rt___gnu_h2f_ieee(uint16_t(bits)), value(bits));
    EXPECT_EQ(rt___gnu_h2f_ieee(uint16_t(bits | 0x8000)), -value(bits));
    EXPECT_EQ(rt___gnu_f2h_ieee(float(value(bits))), bits);
    double middle = (value(bits) + (bits + 1 < 0x7c00 ? value(bits + 1) : 65536.0)) / 2;
    EXPECT_EQ(rt___gnu_f2h_ieee(float(middle)), bits + (bits & 1));
    EXPECT_EQ(rt___gnu_f2h_ieee(std::nextafter(float(middle), 0.0f)), bits);
    EXPECT_EQ(rt___gnu_f2h_ieee(-std::nextafter(float(middle), 1e9f)), (bits + 1) | 0x8000);
  }
  EXPECT_EQ(rt___gnu_f2h_ieee(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(rt___gnu_f2h_ieee(1e30f), 0x7c00);
  EXPECT_EQ(rt___gnu_f2h_ieee(1e-30f), 0);
  EXPECT_EQ(rt___gnu_h2f_ieee(0xfc00), -std::numeric_limits<float>::infinity());
  EXPECT_TRUE(std::isnan(rt___gnu_h2f_ieee(0x7c01)));
  EXPECT_EQ(rt___gnu_f2h_ieee(std::nanf("")) & 0x7e00, 0x7e00);
}

TEST(SupportTest, Roundings) {
  for (int i = 0; i < 300000; ++i) {
    double x = drawDouble();
    float f = drawSingle();
#define CHECK(name)                                                                                                    \
  ASSERT_TRUE(same(rt_##name(x), std::name(x))) << #name << " " << x;                                                  \
  ASSERT_TRUE(same(rt_##name##f(f), std::name(f))) << #name << "f " << f;
    ROUNDINGS(CHECK)
    ASSERT_TRUE(same(rt_roundeven(x), std::rint(x)));
    ASSERT_TRUE(same(rt_roundevenf(f), std::rint(f)));
  }
}

TEST(SupportTest, FusedMultiplyAdd) {
  for (int i = 0; i < 400000; ++i) {
    double x = drawDouble(), y = drawDouble(), z = drawDouble();
    if (i % 2) { // an addend near the product, near the edges of the range too
      x = std::ldexp(1 + double(random64() >> 12) * 0x1p-52, int(random64() % 1200) - 600);
      y = std::ldexp(1 + double(random64() >> 12) * 0x1p-52, int(random64() % 1200) - 600);
      z = std::ldexp(-x * y, int(random64() % 4) * int(random64() % 130) - 70 * int(random64() % 2));
      if (random64() % 2)
        z = std::nextafter(-x * y, 1.0);
    }
    ASSERT_TRUE(same(rt_fma(x, y, z), std::fma(x, y, z))) << x << " " << y << " " << z;
    float a = drawSingle(), b = drawSingle(), c = drawSingle();
    if (i % 2)
      c = std::ldexp(-a * b, int(random64() % 60) - 30);
    ASSERT_TRUE(same(rt_fmaf(a, b, c), std::fma(a, b, c))) << a << " " << b << " " << c;
  }
}

TEST(SupportTest, RemainderScaleExtremes) {
  for (int i = 0; i < 100000; ++i) {
    double x = drawDouble(), y = drawDouble();
    float a = drawSingle(), b = drawSingle();
    ASSERT_TRUE(same(rt_fmodf(a, b), std::fmod(a, b))) << a << " " << b;
    if (i % 8 == 0) {
      ASSERT_TRUE(same(rt_fmod(x, y), std::fmod(x, y))) << x << " " << y;
    }
    int n = int(random64() % 5000) - 2500;
    ASSERT_TRUE(same(rt_ldexp(x, n), std::ldexp(x, n))) << x << " " << n;
    ASSERT_TRUE(same(rt_ldexp(x, n / 64), std::ldexp(x, n / 64))) << x << " " << n / 64;
    ASSERT_TRUE(same(rt_ldexpf(a, n / 8), std::ldexp(a, n / 8))) << a << " " << n / 8;
    if (x != y && !std::isnan(x + y + a + b)) {
      ASSERT_TRUE(same(rt_fmin(x, y), std::fmin(x, y)));
      ASSERT_TRUE(same(rt_fmaxf(a, b), std::fmax(a, b)));
    }
  }
  EXPECT_TRUE(same(rt_fmin(std::nan(""), -1.0), -1.0));
  EXPECT_TRUE(same(rt_fmaxf(2.0f, std::nanf("")), 2.0f));
  EXPECT_TRUE(same(rt_fmin(0.0, -0.0), -0.0));
  EXPECT_TRUE(same(rt_fmax(-0.0, 0.0), 0.0));
  EXPECT_TRUE(std::isnan(rt_fminimum(1.0, std::nan(""))));
  EXPECT_TRUE(same(rt_fmaximumf(-0.0f, 0.0f), 0.0f));
  EXPECT_EQ(rt___powisf2(1.5f, -3), 1 / 3.375f);
  EXPECT_EQ(rt___powidf2(-2.0, 5), -32.0);
}

} // namespace
