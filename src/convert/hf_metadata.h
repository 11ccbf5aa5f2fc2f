// The keys that a GGUF file has of a Hugging Face model's architecture: what gguf_config.cc reads,
// under the names that ggml's description of GGUF gives them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "model/model_config.h"
#include "serving/embedding_format.h"
#include "weights/gguf_writer.h"

namespace pagoda {

// Checks that all of it has keys here. kUnsupported: a family, or a rotation, that has none.
Status check_is_written(const ModelConfig& config);

// How GGUF says what scales the rotary embedding's frequencies.
struct HfRope {
  double linear_factor = 1;     // all frequencies divided by it
  std::vector<float> divisors;  // [head_dim / 2], for rope_freqs.weight; empty: none
};

// Derives the keys from the frequencies that the config came to.
HfRope hf_rope(const ModelConfig& config);

// Sets the keys of the architecture. kUnsupported: windows that differ by layer.
Status set_architecture_keys(const ModelConfig& config, const HfRope& rope, GgufMetadata& metadata);

// Sets how a text becomes an embedding, where the checkpoint says it.
void set_pooling_key(const ModelConfig& config, const std::optional<EmbeddingFormat>& format,
                     GgufMetadata& metadata);

void set_sampling_keys(const PartialSampling& defaults, GgufMetadata& metadata);

}  // namespace pagoda
