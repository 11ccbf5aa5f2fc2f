// ModelConfig: what a checkpoint says of its architecture, whatever format it came in.
//
// hf_config.cc fills it from config.json and gguf_config.cc from GGUF keys; both check every value
// (positive, bounded, divisible where it must be), so that nothing after them needs to.
#pragma once

#include <cmath>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "core/status.h"
#include "model/rope_frequencies.h"
#include "ops/glu/activation.h"
#include "ops/rope/rope_style.h"
#include "ops/route/route_rule.h"
#include "sampling/sampling_params.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The rotation of some layers' queries and keys (Su et al., "RoFormer", 2021, arXiv:2104.09864).
struct RopeTable {
  RopeStyle style = RopeStyle::kHalves;
  double theta = 10000;
  RopeScaling scaling;  // already applied in inv_freq
  // The angle of pair i at position p is p * inv_freq[i], with all scaling applied. There is one
  // value per rotated pair: head_dim / 2, or fewer (partial rotation).
  std::vector<float> inv_freq;
  float factor = 1;  // of cosines and sines: the attention factor of YaRN and LongRoPE

  // LongRoPE's other frequencies, for contexts longer than original_positions; empty: none.
  std::vector<float> long_inv_freq;
  int original_positions = 0;

  bool operator==(const RopeTable&) const = default;
  int rotary_dim() const { return 2 * static_cast<int>(inv_freq.size()); }
};

// Returns the rotation of layers that have none: every pair is rotated by an angle of zero.
inline RopeTable no_rotation(int head_dim) {
  return {.inv_freq = std::vector<float>(head_dim / 2)};
}

// The factor of Ministral 3's queries at position p: 1 + factor * log(1 + floor(p / positions)). If
// `factor` is 0, queries are not changed.
struct QueryGrowth {
  float factor = 0;
  int positions = 1;

  bool operator==(const QueryGrowth&) const = default;
};

enum class QkNorm : std::uint8_t {
  kNone,
  kHead,  // an RMS norm over each head's q and k, before the rotation
  kRow,   // one over all heads of q together, and one over those of k
};

// Parts of attention's output that a gate, softplus of a projection, multiplies.
enum class OutputGate : std::uint8_t {
  kNone,     // there is no gate
  kHead,     // a whole head
  kElement,  // one element of a head
};

struct AttentionConfig {
  int num_heads = 0;
  int num_kv_heads = 0;
  int head_dim = 0;
  int window = 0;      // 0: full attention; else a query sees that many positions, its own included
  int kv_source = -1;  // the earlier layer whose keys and values it reads; -1: it has its own
  bool keys_are_values = false;  // values are the output of the keys' projection, not rotated
  bool norms_values = false;     // by an RMS norm of each head, without weights
  int rope_table = 0;            // of ModelConfig::rope_tables
  float score_scale = 1;         // of a query's and a key's product
  float score_cap = 0;           // 0: none; else scores become cap * tanh(score / cap)
  float qkv_limit = 0;  // 0: none; else queries, keys and values are clamped to it, before rotation
  QkNorm qk_norm = QkNorm::kNone;
  bool has_sinks = false;  // AttentionArgs::sinks
  OutputGate output_gate = OutputGate::kNone;

  bool operator==(const AttentionConfig&) const = default;
  // Returns how many gates the output has.
  int num_output_gates() const {
    if (output_gate == OutputGate::kNone) return 0;
    return output_gate == OutputGate::kHead ? num_heads : num_heads * head_dim;
  }
};

// A gated MLP that is applied to every token.
struct DenseMlpConfig {
  int intermediate_size = 0;

  bool operator==(const DenseMlpConfig&) const = default;
};

// A mixture of experts: a router chooses some gated MLPs for each token, whose outputs are added up.
struct ExpertsConfig {
  int num_experts = 0;
  int intermediate_size = 0;  // of an expert
  RouteRule rule;
  bool has_router_bias = false;      // added to the logits
  bool has_choice_bias = false;      // RouteArgs::choice_bias
  bool has_bias = false;             // whether the experts' matrices have biases
  int shared_intermediate_size = 0;  // of the expert that all tokens share; 0: there is none
  bool has_shared_gate = false;      // whether a sigmoid weighs the shared expert's output
  bool has_expert_scales = false;    // RouteArgs::expert_scales

  bool operator==(const ExpertsConfig&) const = default;
};

// A dense MLP and a mixture side by side, each with norms of its own
// (model/blocks/parallel_mlp_block.h).
struct ParallelMlpConfig {
  DenseMlpConfig dense;
  ExpertsConfig experts;

  bool operator==(const ParallelMlpConfig&) const = default;
};

// A layer mixes tokens, and then applies an MLP to each token. A new kind of mixer or MLP is an
// alternative here and in model/layer_blocks.h, with a block in model/blocks.
using MixerConfig = std::variant<AttentionConfig>;
using MlpConfig = std::variant<DenseMlpConfig, ExpertsConfig, ParallelMlpConfig>;

struct LayerConfig {
  MixerConfig mixer;
  MlpConfig mlp;

  bool operator==(const LayerConfig&) const = default;
  // REQUIRES: the layer has that alternative.
  AttentionConfig& attention() { return std::get<AttentionConfig>(mixer); }
  const AttentionConfig& attention() const { return std::get<AttentionConfig>(mixer); }
  DenseMlpConfig& dense_mlp() { return std::get<DenseMlpConfig>(mlp); }
  const DenseMlpConfig& dense_mlp() const { return std::get<DenseMlpConfig>(mlp); }
  // Returns null if the layer has no mixture.
  const ExpertsConfig* experts() const;
  // Returns the intermediate size of the layer's dense MLP; if it has none, that of an expert.
  int mlp_width() const;
};

// Returns 1 / sqrt(head_dim), the scale of scores in families that define no other.
inline float default_score_scale(int head_dim) {
  return 1.0f / std::sqrt(static_cast<float>(head_dim));
}

struct ModelConfig {
  std::string architecture;  // Hugging Face's model_type, of one of families()
  int vocab_size = 0;
  int hidden_size = 0;
  int max_position_embeddings = 0;  // tokens
  float rms_norm_eps = 1e-6f;
  float norm_offset = 0;  // added to the checkpoint's norm weights at load: Gemma's 1 + w
  GluArgs glu;            // of MLPs
  bool tie_word_embeddings = false;
  bool has_head = true;         // false: it computes embeddings or scores, and no tokens
  bool has_score_head = false;  // scores the last hidden state: serving/pooling/score_format.h
  bool attention_bias = false;  // q, k and v
  bool attention_output_bias = false;  // o
  bool mlp_bias = false;
  float embedding_factor = 1;  // multiplies embeddings
  float residual_factor = 1;   // multiplies a block's output
  float logits_factor = 1;
  float logits_cap = 0;     // 0: none; else logits become cap * tanh(logit / cap)
  int per_layer_width = 0;  // of each layer's own embedding of a token (Gemma 4); 0: none
  QueryGrowth query_growth;
  std::vector<LayerConfig> layers;
  // Layers that a checkpoint has behind these, of a head for drafts. Nothing reads them.
  int num_draft_layers = 0;
  std::vector<RopeTable> rope_tables;
  // End-of-turn and end-of-text ids: generation_config.json's, else config.json's or GGUF's. All
  // lie within the vocabulary.
  std::vector<int> eos_token_ids;
  std::optional<int> bos_token_id;

  bool operator==(const ModelConfig&) const = default;
  int num_layers() const { return static_cast<int>(layers.size()); }
  // Returns the first attention with a window, or without one; the first of all layers if there is
  // none.
  const AttentionConfig& first_attention(bool has_window) const;
  // Returns how many parameters a token does not use: those of the experts that it has not chosen.
  std::int64_t num_idle_parameters() const;
};

// Sets the values that depend on the longest context that is served: max_position_embeddings, up to
// which key biases are averaged, and LongRoPE's frequencies. So a cached key depends neither on its
// reader nor on memory. REQUIRES: max_model_len <= config.max_position_embeddings.
void set_served_context(ModelConfig& config, int max_model_len);

// Reads the config. Errors: kUnsupported for an architecture, rope type or activation that nothing
// here computes; kInvalidArgument or kDataLoss for a value that is missing, of the wrong type or
// out of range. Each names the key.
Result<ModelConfig> read_model_config(const Checkpoint& checkpoint);
// Reads the checkpoint's default sampling: generation_config.json's, or GGUF's general.sampling.*
// keys.
Result<PartialSampling> read_generation_defaults(const Checkpoint& checkpoint);

}  // namespace pagoda
