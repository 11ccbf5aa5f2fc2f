#include "model/rope_frequencies.h"

#include <algorithm>
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

// The pairs between which YaRN blends the stretched and the original frequency.
class YarnBorders {
 public:
  YarnBorders(int rotary_dim, double theta, const RopeScaling& scaling) {
    const auto pair_of = [&](double rotations) {
      return rotary_dim *
             std::log(scaling.original_positions / (rotations * 2 * std::numbers::pi)) /
             (2 * std::log(theta));
    };
    low_ = pair_of(scaling.beta_fast);
    high_ = pair_of(scaling.beta_slow);
    if (scaling.truncates) {
      low_ = std::floor(low_);
      high_ = std::ceil(high_);
    }
    low_ = std::max(low_, 0.0);
    high_ = std::min(high_, rotary_dim - 1.0);
    if (low_ == high_) high_ += 0.001;
  }

  // Returns how far a pair is stretched, from 0 (not) to 1 (by the whole factor).
  float stretched(int pair) const {
    return static_cast<float>(std::clamp((pair - low_) / (high_ - low_), 0.0, 1.0));
  }

 private:
  double low_;
  double high_;
};

}  // namespace

float yarn_magnitude(double factor, double mscale) {
  return factor <= 1 ? 1.0f : static_cast<float>(0.1 * mscale * std::log(factor) + 1);
}

std::vector<float> rope_inverse_frequencies(int rotary_dim, double theta,
                                            const RopeScaling& scaling) {
  const YarnBorders borders(rotary_dim, theta, scaling);
  std::vector<float> frequencies(rotary_dim / 2);
  for (int i = 0; i < rotary_dim / 2; ++i) {
    const float exponent = static_cast<float>(2 * i) / static_cast<float>(rotary_dim);
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
      case RopeScalingType::kYarn:
        frequencies[i] = inv_freq * (1 - borders.stretched(i) * (1 - 1 / scaling.factor));
        break;
    }
  }
  return frequencies;
}

}  // namespace pagoda
