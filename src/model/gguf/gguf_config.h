// ModelConfig from a GGUF file's keys, and from its tensors where those say more: biases, a tied
// embedding, the vocabulary's size, Llama 3's rope factors.
#pragma once

#include <string>

#include "core/status.h"
#include "model/family.h"
#include "model/gguf/gguf_architecture_keys.h"
#include "model/model_config.h"

namespace pagoda {

// Reads the configuration of a GGUF file. REQUIRES: checkpoint.gguf() is not null. Errors as in
// read_model_config.
Result<ModelConfig> read_gguf_config(const Checkpoint& checkpoint);

// Returns the scale of attention scores of a file that has no key for it. For Gemma's
// query_pre_attn_scalar GGUF has no key at all.
float gguf_score_scale(const Family& family, const GgufSizes& sizes,
                       const AttentionConfig& attention);

// Reads the width of a head, which must be the same for keys and values.
Result<int> read_gguf_head_width(const ArchitectureKeys& keys, const std::string& key_length,
                                 const std::string& value_length, int otherwise);

Result<PartialSampling> read_gguf_generation_defaults(const GgufFile& file);

}  // namespace pagoda
