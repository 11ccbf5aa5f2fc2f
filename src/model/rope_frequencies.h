// The frequencies of rotary position embeddings (Su et al., RoFormer, 2021), with the scalings that
// extend a context.
#pragma once

#include <vector>

namespace pagoda {

enum class RopeScalingType { kNone, kLinear, kLlama3 };

struct RopeScaling {
  RopeScalingType type = RopeScalingType::kNone;
  float factor = 1;  // positive
  // Llama 3 only: wavelengths above original_positions / low_freq_factor are stretched by `factor`,
  // those below original_positions / high_freq_factor stay, and between them the two are blended. 0
  // < low < high.
  float low_freq_factor = 1;
  float high_freq_factor = 4;
  float original_positions = 8192;
};

// Returns [head_dim / 2]: theta^(-2i / head_dim), scaled. Steps and roundings are those of
// transformers in float32.
std::vector<float> rope_inverse_frequencies(int head_dim, double theta, const RopeScaling& scaling);

}  // namespace pagoda
