#include "model/gguf/gguf_config.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <string_view>
#include <utility>

#include "model/config_limits.h"
#include "model/family.h"
#include "model/gguf/gguf_architecture_keys.h"
#include "model/gguf/gguf_keys.h"
#include "model/gguf/gguf_rope.h"
#include "model/gguf/gguf_tokens.h"
#include "model/refused_parts.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr NumberRange kScaleRange{0, 1e6};

Status read_sizes(const Checkpoint& checkpoint, const ArchitectureKeys& keys, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.hidden_size, keys.integer("embedding_length", kHiddenRange));
  PAGODA_ASSIGN_OR_RETURN(config.max_position_embeddings,
                          keys.integer("context_length", kPositionRange));
  PAGODA_ASSIGN_OR_RETURN(const double eps,
                          keys.number("attention.layer_norm_rms_epsilon", kEpsilonRange));
  config.rms_norm_eps = static_cast<float>(eps);
  PAGODA_ASSIGN_OR_RETURN(const HostTensor embedding,
                          checkpoint.tensor("model.embed_tokens.weight"));
  const Shape& shape = embedding.shape;
  if (shape.rank() != 2 || shape[1] != config.hidden_size || shape[0] > kVocabRange.max) {
    return data_loss("[gguf] tensor token_embd.weight: expected vocabulary x {}, got {}",
                     config.hidden_size, to_string(shape));
  }
  config.vocab_size = static_cast<int>(shape[0]);
  return ok_status();
}

Result<int> read_head_dim(const ArchitectureKeys& keys, int hidden_size, int num_heads) {
  if (!keys.has("attention.key_length") && hidden_size % num_heads != 0) {
    return data_loss("[gguf] key {}: expected a multiple of {} heads, got {}",
                     keys.name("embedding_length"), num_heads, hidden_size);
  }
  return read_gguf_head_width(keys, "attention.key_length", "attention.value_length",
                              hidden_size / num_heads);
}

// Reads the scale of attention scores.
Status read_scores(const ArchitectureKeys& keys, const Family& family, const ModelConfig& config,
                   int num_layers, AttentionConfig& layer) {
  layer.score_scale = gguf_score_scale(
      family, {.num_layers = num_layers, .hidden_size = config.hidden_size}, layer);
  if (family.reads_gguf("attention.scale")) {
    PAGODA_ASSIGN_OR_RETURN(const double scale, keys.number_or("attention.scale", kScaleRange, 0));
    if (scale != 0) layer.score_scale = static_cast<float>(scale);
  }
  return ok_status();
}

// Sets the window of the layers that have one: those that the file lists, or all but every n-th.
Status read_windows(const GgufFile& file, const ArchitectureKeys& keys, const Family& family,
                    int window, ModelConfig& config) {
  constexpr std::string_view kPattern = "attention.sliding_window_pattern";
  const int num_layers = config.num_layers();
  int pattern = family.window_pattern;
  const auto listed = file.booleans(keys.name(kPattern));
  if (listed.ok()) {
    if (static_cast<int>(listed->size()) != num_layers) {
      return data_loss("[gguf] key {}: expected a value for each of {} layers, got {}",
                       keys.name(kPattern), num_layers, listed->size());
    }
  } else if (keys.has(kPattern)) {
    PAGODA_ASSIGN_OR_RETURN(pattern, keys.integer(kPattern, kLayerRange));
  }
  for (int i = 0; i < num_layers; ++i) {
    const bool has_window = listed.ok() ? (*listed)[i] : pattern == 0 || (i + 1) % pattern != 0;
    config.layers[i].attention().window = has_window ? window : 0;
  }
  return ok_status();
}

// Reads the factors of embeddings, block outputs and logits, the cap of logits, and the activation.
Status read_multipliers(const ArchitectureKeys& keys, const Family& family, ModelConfig& config) {
  // Zero means that the file sets no value.
  const auto read = [&](std::string_view key, double otherwise) -> Result<double> {
    if (!family.reads_gguf(key)) return otherwise;
    PAGODA_ASSIGN_OR_RETURN(const double value, keys.number_or(key, kScaleRange, 0));
    return value == 0 ? otherwise : value;
  };
  const double root = family.scales_embedding ? std::sqrt(config.hidden_size) : 1;
  PAGODA_ASSIGN_OR_RETURN(const double of_embedding, read("embedding_scale", root));
  PAGODA_ASSIGN_OR_RETURN(const double of_blocks, read("residual_scale", 1));
  PAGODA_ASSIGN_OR_RETURN(const double logits_divisor, read("logit_scale", 1));
  PAGODA_ASSIGN_OR_RETURN(const double cap,
                          read("final_logit_softcapping", family.gguf_logits_cap));
  config.embedding_factor = static_cast<float>(of_embedding);
  config.residual_factor = static_cast<float>(of_blocks);
  config.logits_factor = static_cast<float>(1 / logits_divisor);
  config.logits_cap = static_cast<float>(cap);
  config.glu = family.gguf_glu();
  return ok_status();
}

Status read_layers(const Checkpoint& checkpoint, const ArchitectureKeys& keys, const Family& family,
                   int window, ModelConfig& config) {
  AttentionConfig layer = {.qk_norm = family.qk_norm};
  PAGODA_ASSIGN_OR_RETURN(const int num_blocks, keys.integer("block_count", kLayerRange));
  if (family.reads_gguf("nextn_predict_layers")) {
    PAGODA_ASSIGN_OR_RETURN(config.num_draft_layers,
                            keys.integer_or("nextn_predict_layers", {0, num_blocks - 1}, 0));
  }
  const int num_layers = num_blocks - config.num_draft_layers;
  PAGODA_ASSIGN_OR_RETURN(const std::vector<int> num_heads,
                          keys.layer_integers("attention.head_count", kHeadRange, num_layers));
  std::vector<int> num_kv_heads = num_heads;
  if (keys.has("attention.head_count_kv")) {
    PAGODA_ASSIGN_OR_RETURN(num_kv_heads,
                            keys.layer_integers("attention.head_count_kv", kHeadRange, num_layers));
  }
  PAGODA_ASSIGN_OR_RETURN(
      const std::vector<int> widths,
      keys.layer_integers("feed_forward_length", kIntermediateRange, num_layers));
  PAGODA_ASSIGN_OR_RETURN(layer.head_dim,
                          read_head_dim(keys, config.hidden_size, num_heads.front()));
  PAGODA_RETURN_IF_ERROR(read_scores(keys, family, config, num_layers, layer));
  for (int i = 0; i < num_layers; ++i) {
    layer.num_heads = num_heads[i];
    layer.num_kv_heads = num_kv_heads[i];
    config.layers.push_back(
        {.mixer = layer, .mlp = DenseMlpConfig{.intermediate_size = widths[i]}});
  }
  return read_windows(*checkpoint.gguf(), keys, family, window, config);
}

Status read_token_ids(const GgufFile& file, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(
      config.bos_token_id,
      read_gguf_token_id(file, "tokenizer.ggml.bos_token_id", config.vocab_size));
  PAGODA_ASSIGN_OR_RETURN(GgufTokens tokens, read_gguf_tokens(file, config.vocab_size));
  config.eos_token_ids = std::move(tokens.end_ids);
  return ok_status();
}

// Reads how the model pools. serving/pooling/embedding_format.cc reads the rest.
Status read_pooling(const GgufFile& file, std::string_view architecture, ModelConfig& config) {
  constexpr std::int64_t kRank = 4;
  const std::string key = fmt::format("{}.pooling_type", architecture);
  PAGODA_ASSIGN_OR_RETURN(const std::int64_t pooling, file.integer_or(key, 0));
  if (pooling < 0 || pooling > kRank)
    return unsupported("[gguf] {}: {} is not supported", key, pooling);
  config.has_score_head = pooling == kRank;
  config.has_head = !config.has_score_head;
  return ok_status();
}

}  // namespace

float gguf_score_scale(const Family& family, const GgufSizes& sizes,
                       const AttentionConfig& attention) {
  if (family.gguf_score_scale != nullptr) return family.gguf_score_scale(sizes, attention);
  return default_score_scale(attention.head_dim);
}

Result<int> read_gguf_head_width(const ArchitectureKeys& keys, const std::string& key_length,
                                 const std::string& value_length, int otherwise) {
  PAGODA_ASSIGN_OR_RETURN(const int head_dim,
                          keys.integer_or(key_length, kHeadDimRange, otherwise));
  PAGODA_ASSIGN_OR_RETURN(const int value_dim,
                          keys.integer_or(value_length, kHeadDimRange, head_dim));
  if (value_dim == head_dim) return head_dim;
  return unsupported("[gguf] key {}: {} in heads of {} is not supported", keys.name(value_length),
                     value_dim, head_dim);
}

Result<ModelConfig> read_gguf_config(const Checkpoint& checkpoint) {
  const GgufFile& file = *checkpoint.gguf();
  PAGODA_ASSIGN_OR_RETURN(const std::string_view architecture, file.string("general.architecture"));
  if (find_gguf_family(architecture, {}) == nullptr) {
    return unsupported("[gguf] architecture {}{} is not supported; these are: {}",
                       printable(architecture), refused_parts(file, architecture),
                       supported_gguf_architectures());
  }
  const ArchitectureKeys keys(file, std::string(architecture));
  PAGODA_ASSIGN_OR_RETURN(const int window,
                          keys.integer_or("attention.sliding_window", {0, kPositionRange.max}, 0));
  PAGODA_ASSIGN_OR_RETURN(const int num_experts,
                          keys.integer_or("expert_count", {0, kExpertRange.max}, 0));
  const Family& family =
      *find_gguf_family(architecture, {.has_window = window != 0, .has_experts = num_experts > 0});
  PAGODA_RETURN_IF_ERROR(check_gguf_keys(file, architecture, family));
  PAGODA_ASSIGN_OR_RETURN(const Checkpoint named, checkpoint.renamed(*family.gguf_tensor_names));
  ModelConfig config;
  config.architecture = family.model_type;
  PAGODA_RETURN_IF_ERROR(read_pooling(file, architecture, config));
  PAGODA_RETURN_IF_ERROR(read_sizes(named, keys, config));
  PAGODA_RETURN_IF_ERROR(read_layers(named, keys, family, window, config));
  PAGODA_RETURN_IF_ERROR(read_multipliers(keys, family, config));
  if (family.finish_gguf_config != nullptr)
    PAGODA_RETURN_IF_ERROR(family.finish_gguf_config(named, keys, config));
  PAGODA_RETURN_IF_ERROR(read_gguf_rope(named, keys, family, config));
  config.tie_word_embeddings = !named.has("lm_head.weight");
  config.attention_bias = named.has("model.layers.0.self_attn.q_proj.bias") ||
                          named.has("model.layers.0.self_attn.qkv_proj.bias");
  config.attention_output_bias = named.has("model.layers.0.self_attn.o_proj.bias");
  config.mlp_bias = named.has("model.layers.0.mlp.up_proj.bias");
  PAGODA_RETURN_IF_ERROR(read_token_ids(file, config));
  PAGODA_RETURN_IF_ERROR(check_consistency(config));
  return config;
}

}  // namespace pagoda
