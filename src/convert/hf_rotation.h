// A Hugging Face model's rotations as a GGUF file says them, and gguf_rope.cc reads them: keys, and
// tensors of divisors.
#pragma once

#include <string>
#include <vector>

#include "core/status.h"
#include "model/model_config.h"
#include "weights/gguf_writer.h"

namespace pagoda {

// Divides each pair's frequency, [rotary_dim / 2]; empty: there is no such tensor.
struct GgufDivisors {
  std::vector<float> always;             // rope_freqs.weight
  std::vector<float> of_long, of_short;  // rope_factors_long.weight, rope_factors_short.weight
};

// Sets the keys. kUnsupported: a rotation that a file of the family has no keys for.
Result<GgufDivisors> set_rotation_keys(const ModelConfig& config, GgufMetadata& metadata);

}  // namespace pagoda
