// Vectors of the instruction set that a *.simd.cpp file is compiled for, as compiler extensions: the same source for
// AVX-512, AVX2, SSE and NEON. Only plain pointers here and in the files that include it: an inline function of the standard
// library compiled for a newer CPU could be linked into code that runs on an older one.
#pragma once

#include <cstdint>
#include <cstring>

#if !defined(ROLLSCOPE_ISA)
#error "simd.h belongs to files named *.simd.cpp, which are compiled once for each instruction set"
#endif

namespace rollscope::ROLLSCOPE_ISA {

#if defined(__AVX512F__)
inline constexpr int kLanes = 16;
#elif defined(__AVX2__)
inline constexpr int kLanes = 8;
#else
inline constexpr int kLanes = 4;
#endif

typedef float Vec __attribute__((vector_size(kLanes * sizeof(float))));
typedef int32_t IntVec __attribute__((vector_size(kLanes * sizeof(int32_t))));
typedef double DoubleVec __attribute__((vector_size(kLanes * sizeof(double))));
typedef float UnalignedVec __attribute__((vector_size(kLanes * sizeof(float)), aligned(4), may_alias));

inline Vec load(const float* from) { return *reinterpret_cast<const UnalignedVec*>(from); }
inline void store(float* to, Vec value) { *reinterpret_cast<UnalignedVec*>(to) = value; }
inline Vec splat(float value) { return Vec{} + value; }
inline Vec select(IntVec condition, Vec yes, Vec no) { return condition ? yes : no; }
inline Vec greater(Vec a, Vec b) { return a > b ? a : b; }

/// The first `count` lanes from memory, `fill` in the others.
inline Vec load_part(const float* from, int64_t count, float fill = 0.0f) {
  Vec value = splat(fill);
  for (int64_t lane = 0; lane < count; lane++) value[lane] = from[lane];
  return value;
}
inline void store_part(float* to, Vec value, int64_t count) {
  for (int64_t lane = 0; lane < count; lane++) to[lane] = value[lane];
}

/// Sum of the lanes in a fixed order: halves are added until one is left.
inline float sum_lanes(Vec value) {
  float lanes[kLanes];
  std::memcpy(lanes, &value, sizeof lanes);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
  return lanes[0];
}
inline double sum_lanes(DoubleVec value) {
  double lanes[kLanes];
  std::memcpy(lanes, &value, sizeof lanes);
  for (int width = kLanes / 2; width > 0; width /= 2)
    for (int lane = 0; lane < width; lane++) lanes[lane] += lanes[lane + width];
  return lanes[0];
}
inline float largest_lane(Vec value) {
  float largest = value[0];
  for (int lane = 1; lane < kLanes; lane++) largest = value[lane] > largest ? value[lane] : largest;
  return largest;
}
inline DoubleVec widen(Vec value) { return __builtin_convertvector(value, DoubleVec); }

/// eˣ within two units in the last place: 2ⁿ · e^r with |r| ≤ ln 2 / 2, e^r by a polynomial of degree 6. Below −87.3 the result is 0,
/// above 88.3 it stays at e^88.3; NaN stays NaN.
inline Vec exponential(Vec x) {
  const Vec highest = splat(88.3f), lowest = splat(-87.3f);
  Vec bounded = x > highest ? highest : x;
  bounded = bounded < lowest ? lowest : bounded;
  const Vec magic = splat(12582912.0f);  // 1.5 · 2²³: adding it rounds to an integer kept in the low bits
  const Vec shifted = bounded * 1.44269504088896341f + magic;
  const Vec n = shifted - magic;
  Vec r = bounded - n * 0.693359375f;
  r = r + n * 2.12194440e-4f;
  Vec p = splat(1.0f / 720.0f);
  p = p * r + (1.0f / 120.0f);
  p = p * r + (1.0f / 24.0f);
  p = p * r + (1.0f / 6.0f);
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  IntVec exponent;
  std::memcpy(&exponent, &shifted, sizeof exponent);
  exponent = (exponent << 23) + 0x3f800000;
  Vec power;
  std::memcpy(&power, &exponent, sizeof power);
  return x < lowest ? splat(0.0f) : p * power;
}

}  // namespace rollscope::ROLLSCOPE_ISA
