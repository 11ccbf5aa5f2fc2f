#include "model/rope_frequencies.h"

#include <cmath>
#include <numbers>

namespace pagoda {
namespace {

float scale_llama3(float inv_freq, const RopeScaling& scaling) {
  const float wavelength = 2 * std::numbers::pi_v<float> / inv_freq;
  const float longest_kept = scaling.original_positions / scaling.high_freq_factor;
  const float shortest_stretched = scaling.original_positions / scaling.low_freq_factor;
  if (wavelength < longest_kept) return inv_freq;
  if (wavelength > shortest_stretched) return inv_freq / scaling.factor;
  const float kept = (scaling.original_positions / wavelength - scaling.low_freq_factor) /
                     (scaling.high_freq_factor - scaling.low_freq_factor);
  return (1 - kept) * inv_freq / scaling.factor + kept * inv_freq;
}

}  // namespace

std::vector<float> rope_inverse_frequencies(int head_dim, double theta,
                                            const RopeScaling& scaling) {
  std::vector<float> frequencies(head_dim / 2);
  for (int i = 0; i < head_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(head_dim);
    const float inv_freq = 1.0f / static_cast<float>(std::pow(theta, exponent));
    switch (scaling.type) {
      case RopeScalingType::kNone:
        frequencies[i] = inv_freq;
        break;
      case RopeScalingType::kLinear:
        frequencies[i] = inv_freq / scaling.factor;
        break;
      case RopeScalingType::kLlama3:
        frequencies[i] = scale_llama3(inv_freq, scaling);
        break;
    }
  }
  return frequencies;
}

}  // namespace pagoda
