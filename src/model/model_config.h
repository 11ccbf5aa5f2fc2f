// ModelConfig: what a checkpoint says of its architecture, whatever format it came in.
//
// hf_config.cc fills it from config.json and gguf_config.cc from GGUF keys; both check every value
// (positive, bounded, divisible where it must be), so that nothing after them needs to.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/status.h"
#include "ops/rope/rope_style.h"
#include "weights/checkpoint.h"

namespace pagoda {

struct ModelConfig {
  std::string architecture;  // Hugging Face's model_type: "llama", "qwen2", "qwen3", "mistral"
  int vocab_size = 0;
  int hidden_size = 0;
  int intermediate_size = 0;
  int num_layers = 0;
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int max_position_embeddings = 0;  // tokens
  float rms_norm_eps = 1e-6f;
  bool tie_word_embeddings = false;
  bool attention_bias = false;         // q, k and v
  bool attention_output_bias = false;  // o
  bool mlp_bias = false;
  RopeStyle rope_style = RopeStyle::kHalves;
  double rope_theta = 10000;
  // The angle of pair i at position p is p * rope_inv_freq[i]; [head_dim / 2], scaling (Llama 3,
  // linear) already applied.
  std::vector<float> rope_inv_freq;
  std::vector<int> layer_windows;  // [num_layers]; 0: full attention, else a query sees that many
                                   // positions, its own included
  // End-of-turn and end-of-text ids: generation_config.json's, else config.json's or GGUF's. All
  // lie within the vocabulary.
  std::vector<int> eos_token_ids;
  std::optional<int> bos_token_id;
};

// A checkpoint's default sampling: generation_config.json's, or GGUF's general.sampling.* keys.
// Absent: vLLM's defaults.
struct GenerationDefaults {
  std::optional<float> temperature;
  std::optional<float> top_p;
  std::optional<float> min_p;
  std::optional<int> top_k;
  std::optional<float> repetition_penalty;
  std::optional<float> xtc_probability;
  std::optional<float> xtc_threshold;
  std::optional<int> mirostat;
  std::optional<float> mirostat_tau;
  std::optional<float> mirostat_eta;

  bool operator==(const GenerationDefaults&) const = default;
};

// Errors: kUnsupported for an architecture, rope type or activation that nothing here computes;
// kInvalidArgument or kDataLoss for a value that is missing, of the wrong type or out of range.
// Each names the key.
Result<ModelConfig> read_model_config(const Checkpoint& checkpoint);
Result<GenerationDefaults> read_generation_defaults(const Checkpoint& checkpoint);

}  // namespace pagoda
