// Writes a Hugging Face model's rotations to GGUF, for gguf_rope.cc to read: as keys, and as
// tensors of divisors.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "model/model_config.h"
#include "weights/gguf_writer.h"

namespace pagoda {

// Divisors of the pairs' frequencies, each [rotary_dim / 2]; empty: there is no such tensor.
struct GgufDivisors {
  std::vector<float> always;             // rope_freqs.weight
  std::vector<float> of_long, of_short;  // rope_factors_long.weight, rope_factors_short.weight
};

// Sets the keys and returns the divisors. kUnsupported: a rotation without keys in files of the
// family.
Result<GgufDivisors> set_rotation_keys(const ModelConfig& config, GgufMetadata& metadata);

}  // namespace pagoda
