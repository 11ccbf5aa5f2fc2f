// The keys that a GGUF file has of a Hugging Face model's architecture: what gguf_config.cc reads,
// under the names that ggml's description of GGUF gives them and with the values that llama.cpp's
// converter writes.
#pragma once

#include <optional>

#include "core/status.h"
#include "model/model_config.h"
#include "serving/embedding_format.h"
#include "weights/gguf_writer.h"

namespace pagoda {

// Sets the keys of the architecture but those of its rotations (convert/hf_rotation.h). kUnsupported
// names what a file of the family has no key for.
Status set_architecture_keys(const ModelConfig& config, GgufMetadata& metadata);

// Sets how a text becomes an embedding, where the checkpoint says it. A warning tells of values
// without a key: prompts and the like.
void set_pooling_key(const ModelConfig& config, const std::optional<EmbeddingFormat>& format,
                     GgufMetadata& metadata);

void set_sampling_keys(const PartialSampling& defaults, GgufMetadata& metadata);

}  // namespace pagoda
