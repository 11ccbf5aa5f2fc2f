// ModelConfig: what a checkpoint says of its architecture, whatever format it came in.
//
// hf_config.cc fills it from config.json and gguf_config.cc from GGUF keys; both check every value
// (positive, bounded, divisible where it must be), so that nothing after them needs to.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "ops/rope/rope_style.h"
#include "sampling/sampling_params.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The rotation of some layers' queries and keys (Su et al., "RoFormer", 2021, arXiv:2104.09864).
struct RopeTable {
  RopeStyle style = RopeStyle::kHalves;
  double theta = 10000;
  // The angle of pair i at position p is p * inv_freq[i]; [head_dim / 2], scaling (Llama 3, linear)
  // already applied.
  std::vector<float> inv_freq;
};

struct LayerConfig {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int window = 0;            // 0: full attention, else a query sees that many positions, its own
                             // included
  int rope_table = 0;        // of ModelConfig::rope_tables
  float score_scale = 1;     // of a query's and a key's product
  bool has_qk_norm = false;  // an RMS norm over each head's q and k, before the rotation
};

// Returns 1 / sqrt(head_dim): what families scale scores by that say nothing else.
inline float default_score_scale(int head_dim) {
  return 1.0f / std::sqrt(static_cast<float>(head_dim));
}

struct ModelConfig {
  std::string architecture;  // Hugging Face's model_type, of one of families()
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int max_position_embeddings = 0;  // tokens
  float rms_norm_eps = 1e-6f;
  bool tie_word_embeddings = false;
  bool attention_bias = false;         // q, k and v
  bool attention_output_bias = false;  // o
  bool mlp_bias = false;
  std::vector<LayerConfig> layers;
  std::vector<RopeTable> rope_tables;
  // End-of-turn and end-of-text ids: generation_config.json's, else config.json's or GGUF's. All
  // lie within the vocabulary.
  std::vector<int> eos_token_ids;
  std::optional<int> bos_token_id;

  int num_layers() const { return static_cast<int>(layers.size()); }
};

// Errors: kUnsupported for an architecture, rope type or activation that nothing here computes;
// kInvalidArgument or kDataLoss for a value that is missing, of the wrong type or out of range.
// Each names the key.
Result<ModelConfig> read_model_config(const Checkpoint& checkpoint);
// Reads the checkpoint's default sampling: generation_config.json's, or GGUF's general.sampling.*
// keys.
Result<PartialSampling> read_generation_defaults(const Checkpoint& checkpoint);

}  // namespace pagoda
