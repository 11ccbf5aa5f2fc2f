// The weight of a token in a draw, with the same bits as in draw/token_weight.h.
//
// The operations are the same IEEE float32 additions and multiplications in the same order, and
// none is fused. Their numbers are not subnormal, because an Apple GPU treats subnormal ones as
// zero.
#ifndef PAGODA_TOKEN_WEIGHT_METAL_H
#define PAGODA_TOKEN_WEIGHT_METAL_H

#include "backend/gpu/kernel.metal.h"

// Numbers that a row's weights are computed with. The inverse temperature is inverse_temperature *
// scale; the scale is a power of two for which neither factor is subnormal.
struct Weighing {
  float max;  // the row's largest logit
  float inverse_temperature;
  float scale;
  float least_power;  // tokens with a lower power of e weigh 0; at least -87
};

// Returns the numbers for the weights of a row. inverse_temperature: bits of float32
inline Weighing weighing_of(float max, uint inverse_temperature) {
  Weighing weighing;
  weighing.max = max;
  weighing.inverse_temperature = as_type<float>(inverse_temperature);
  weighing.scale = 1.0f;
  weighing.least_power = -87.0f;
  const bool is_subnormal = inverse_temperature < 0x00800000u;
  if (is_subnormal) {  // its bits count 2^-149ths
    weighing.inverse_temperature =
        float(inverse_temperature) * as_type<float>(0x34000000u);  // 2^-23
    weighing.scale = as_type<float>(0x00800000u);                  // 2^-126
  }
  return weighing;
}

// Returns x where the weight of a token is e^x.
inline float power_of(float logit, thread const Weighing& weighing) {
  const float distance = logit - weighing.max;
  const float scaled = distance * weighing.inverse_temperature;
  return scaled * weighing.scale;
}

inline float next_power(float sum, float r, float coefficient) {
  const float product = sum * r;
  return product + coefficient;
}

inline ulong token_weight(float logit, thread const Weighing& weighing) {
  const float x = power_of(logit, weighing);
  if (!(x >= weighing.least_power)) return 0;
  const float kMagic = 12582912.0f;
  const float scaled = x * 1.44269502f;
  const float shifted = scaled + kMagic;
  const float n = shifted - kMagic;
  const float high = n * 0.693145752f;
  const float low = n * 1.42860677e-06f;
  const float rest = x - high;
  const float r = rest - low;
  float p = 0.00138145988f;
  p = next_power(p, r, 0.00836871658f);
  p = next_power(p, r, 0.041668389f);
  p = next_power(p, r, 0.166665211f);
  p = next_power(p, r, 0.49999994f);
  p = next_power(p, r, 1.0f);
  p = next_power(p, r, 1.0f);
  const uint exponent = as_type<uint>(shifted) << 23;
  const float share = as_type<float>(as_type<uint>(p) + exponent);
  const float weight = rint(share * 4398046511104.0f);  // 2^42
  // Converts two halves, each exactly: Apple GPUs convert a float to 32 bits, not to 64.
  const uint upper = uint(weight * as_type<float>(0x35000000u));  // 2^-21
  const uint lower = uint(weight - float(upper) * 2097152.0f);
  return (ulong(upper) << 21) + ulong(lower);
}

// Returns floor(total * fraction / 2^62). The total is in [0, 2^62], the fraction in [0, 2^62).
inline ulong share_of(ulong total, ulong fraction) {
  const ulong kLow = 0x7fffffffu;
  const ulong high = total >> 31;
  const ulong low = total & kLow;
  const ulong share_high = fraction >> 31;
  const ulong share_low = fraction & kLow;
  const ulong middle = high * share_low + low * share_high + ((low * share_low) >> 31);
  return high * share_high + (middle >> 31);
}

// Returns p, which is in (0, 1), in units of 2^-62. It is rounded to a multiple of 2^-31, but never
// to 0.
inline ulong fraction_of(float p) {
  const uint rounded = uint(rint(p * 2147483648.0f));  // 2^31
  return ulong(rounded > 0 ? rounded : 1u) << 31;
}

#endif  // PAGODA_TOKEN_WEIGHT_METAL_H
