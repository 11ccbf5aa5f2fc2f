// Writes the keys of a Hugging Face model's architecture to GGUF, for gguf_config.cc to read. The
// names are those in ggml's description of GGUF, the values those that llama.cpp's converter
// writes.
#pragma once

#include <optional>

#include "core/status.h"
#include "model/model_config.h"
#include "serving/pooling/embedding_format.h"
#include "weights/gguf_writer.h"

namespace pagoda {

// Sets the keys of the architecture except those of its rotations (convert/hf_rotation.h).
// kUnsupported names a value that has no key in files of the family.
Status set_architecture_keys(const ModelConfig& config, GgufMetadata& metadata);

// Sets how a text becomes an embedding, if the checkpoint describes it. Warns of values without a
// key, such as prompts.
void set_pooling_key(const ModelConfig& config, const std::optional<EmbeddingFormat>& format,
                     GgufMetadata& metadata);

void set_sampling_keys(const PartialSampling& defaults, GgufMetadata& metadata);

}  // namespace pagoda
