// Cosines and sines of a position's angles in float32, exact enough for long contexts.
#ifndef PAGODA_ROPE_ANGLE_METAL_H
#define PAGODA_ROPE_ANGLE_METAL_H

// An angle modulo a quarter turn.
struct ReducedAngle {
  float rest;    // radians, from about -pi / 4 to pi / 4
  int quarters;  // quarter turns, modulo 4
};

// Returns position * frequency minus whole quarter turns. The product has twice the bits of a
// float. A quarter turn, pi / 2, is subtracted in three parts (Cody and Waite, Software Manual for
// the Elementary Functions, 1980). The first difference is exact: below 2^20 both terms are
// multiples of 2^-23 or finer, and it is below 1. For products below 2^20 the rest is off by 1e-7
// at most.
inline ReducedAngle reduced_angle(float position, float frequency) {
  const float angle = position * frequency;
  const float angle_rest = fma(position, frequency, -angle);
  const float n = rint(angle * 0.636619772f);
  float rest = fma(-n, 1.57079637f, angle);
  rest = fma(-n, -4.37113883e-8f, rest);
  rest = rest + fma(-n, -1.71512451e-15f, angle_rest);
  ReducedAngle reduced;
  reduced.rest = rest;
  reduced.quarters = int(n) & 3;
  return reduced;
}

// Returns the sine or cosine of an angle up to pi / 4, by a Taylor series. The first term that is
// left out is below 2e-9.
inline float sine_of(float rest) {
  const float square = rest * rest;
  float sum = fma(square, 2.75573192e-6f, -1.98412698e-4f);
  sum = fma(square, sum, 8.33333333e-3f);
  sum = fma(square, sum, -1.66666667e-1f);
  return fma(square * rest, sum, rest);
}
inline float cosine_of(float rest) {
  const float square = rest * rest;
  float sum = fma(square, -2.75573192e-7f, 2.48015873e-5f);
  sum = fma(square, sum, -1.38888889e-3f);
  sum = fma(square, sum, 4.16666667e-2f);
  sum = fma(square, sum, -0.5f);
  return fma(square, sum, 1.0f);
}

// Returns the sine of a reduced angle; its cosine is the sine of one quarter more.
inline float sine_of_reduced(float rest, int quarters) {
  const float value = (quarters & 1) != 0 ? cosine_of(rest) : sine_of(rest);
  return (quarters & 2) != 0 ? -value : value;
}

#endif  // PAGODA_ROPE_ANGLE_METAL_H
