// ModelConfig from a GGUF file's keys, and from its tensors where those say more: biases, a tied
// embedding, the vocabulary's size, Llama 3's rope factors.
#pragma once

#include "core/status.h"
#include "model/family.h"
#include "model/model_config.h"

namespace pagoda {

// Reads the configuration of a GGUF file. REQUIRES: checkpoint.gguf() is not null. Errors as in
// read_model_config.
Result<ModelConfig> read_gguf_config(const Checkpoint& checkpoint);

// Returns what the products of queries and keys are multiplied by where a file says nothing of it:
// files have no key for Gemma's query_pre_attn_scalar.
float gguf_score_scale(const Family& family, int num_layers, int hidden_size,
                       const AttentionConfig& layer);

Result<PartialSampling> read_gguf_generation_defaults(const GgufFile& file);

}  // namespace pagoda
