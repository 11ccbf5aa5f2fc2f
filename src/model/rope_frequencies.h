// The frequencies of rotary position embeddings (Su et al., RoFormer, 2021), with the scalings that
// extend a context.
#pragma once

#include <vector>

namespace pagoda {

enum class RopeScalingType { kNone, kLinear, kLlama3, kYarn };

struct RopeScaling {
  RopeScalingType type = RopeScalingType::kNone;
  float factor = 1;  // positive
  // Llama 3 only: wavelengths above original_positions / low_freq_factor are stretched by `factor`,
  // those below original_positions / high_freq_factor stay, and between them the two are blended. 0
  // < low < high.
  float low_freq_factor = 1;
  float high_freq_factor = 4;
  float original_positions = 8192;
  // YaRN only (Peng et al., 2023, arXiv:2309.00071): pairs that rotate beta_fast times and more over
  // the original positions stay. Those that rotate beta_slow times and less are stretched by
  // `factor`. Between them the two are blended by the pair's number. The borders are whole pairs
  // if `truncates`.
  float beta_fast = 32;
  float beta_slow = 1;
  bool truncates = true;

  bool operator==(const RopeScaling&) const = default;
};

// Returns [rotary_dim / 2]: theta^(-2i / rotary_dim), scaled. Steps and roundings are those of
// transformers in float32.
std::vector<float> rope_inverse_frequencies(int rotary_dim, double theta,
                                            const RopeScaling& scaling);

// Returns YaRN's factor of cosines and sines for contexts `factor` times as long: 0.1 * mscale *
// ln(factor) + 1, or 1 if `factor` is 1 or less.
float yarn_magnitude(double factor, double mscale);

}  // namespace pagoda
