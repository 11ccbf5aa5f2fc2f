// Gemma 4 (2026): Gemma 3's layer (gemma.cc) with norms of values too, and unscaled scores. Layers
// without a window have larger heads, a quarter of which is rotated, and may use keys as values.
// The last layers may read an earlier layer's cache. At its end a layer adds a term gated by its
// own short embedding, and its output is multiplied by a factor.
#include <charconv>
#include <string>
#include <system_error>

#include "core/json.h"
#include "core/log.h"
#include "model/config_limits.h"
#include "model/families/family_pages.h"
#include "model/gguf/gguf_architecture_keys.h"
#include "model/gguf/gguf_config.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"
#include "model/hf/json_fields.h"
#include "weights/printable.h"

namespace pagoda {
namespace {

constexpr TensorName kGemma4OwnNames[] = {
    {"attn_norm", "input_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
    {"inp_gate", "per_layer_input_gate"},
    {"proj", "per_layer_projection"},
    {"post_norm", "post_per_layer_input_norm"},
    {"layer_output_scale", "layer_scalar"},
    {"ffn_gate_inp", "router.proj"},
    {"ffn_gate_inp.scale", "router.scale"},
    {"ffn_gate_exps", "experts.gate_proj"},
    {"ffn_up_exps", "experts.up_proj"},
    {"ffn_down_exps", "experts.down_proj"},
    {"ffn_down_exps.scale", "router.per_expert_scale"},
    {"ffn_gate_up_exps", "experts.gate_up_proj"},
    {"pre_ffw_norm_2", "pre_feedforward_layernorm_2"},
    {"post_ffw_norm_1", "post_feedforward_layernorm_1"},
    {"post_ffw_norm_2", "post_feedforward_layernorm_2"},
};

// The tensors that all families have, and those of the short embeddings.
constexpr TensorName kGemma4ModelNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"per_layer_token_embd", "model.embed_tokens_per_layer"},
    {"per_layer_model_proj", "model.per_layer_model_projection"},
    {"per_layer_proj_norm", "model.per_layer_projection_norm"},
};
constexpr TensorNames kGemma4TensorNames = {
    .of_model = kGemma4ModelNames, .of_layer = kLayerTensorNames, .of_family = kGemma4OwnNames};

constexpr std::string_view kGemma4Keys[] = {
    "attention_k_eq_v",           "enable_moe_block",
    "final_logit_softcapping",    "global_head_dim",
    "hidden_activation",          "hidden_size_per_layer_input",
    "moe_intermediate_size",      "num_experts",
    "num_global_key_value_heads", "num_kv_shared_layers",
    "per_layer_config",           "top_k_experts",
    "use_double_wide_mlp",        "vocab_size_per_layer_input"};
constexpr std::string_view kGemma4GgufKeys[] = {"attention.key_length_swa",
                                                "attention.shared_kv_layers",
                                                "attention.sliding_window_pattern",
                                                "attention.value_length_swa",
                                                "embedding_length_per_layer_input",
                                                "expert_count",
                                                "expert_feed_forward_length",
                                                "expert_used_count",
                                                "final_logit_softcapping",
                                                "rope.dimension_count_swa",
                                                "rope.freq_base_swa"};

// Reads the head sizes of full-attention layers from the keys of older files.
Status read_global_heads(const JsonFields& fields, bool keys_are_values, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int head_dim, fields.integer("global_head_dim", kHeadDimRange));
  int num_kv_heads = config.layers.front().attention().num_kv_heads;
  if (keys_are_values) {
    PAGODA_ASSIGN_OR_RETURN(
        num_kv_heads, fields.integer_or("num_global_key_value_heads", kHeadRange, num_kv_heads));
  }
  for (LayerConfig& each : config.layers) {
    AttentionConfig& layer = each.attention();
    if (layer.window > 0) continue;
    layer.head_dim = head_dim;
    layer.num_kv_heads = num_kv_heads;
  }
  return ok_status();
}

// Reads one layer's entry of per_layer_config.
Status read_own_heads(const JsonFields& own, AttentionConfig& layer) {
  for (const auto& [key, value] : own.json().items()) {
    if (key == "head_dim" || key == "num_key_value_heads") continue;
    if (key == "skip" && value == nlohmann::json::array()) continue;
    return unsupported("[config] {}: {} is not supported; head_dim and num_key_value_heads are",
                       own.where(), printable(key, 60));
  }
  PAGODA_ASSIGN_OR_RETURN(layer.head_dim,
                          own.integer_or("head_dim", kHeadDimRange, layer.head_dim));
  PAGODA_ASSIGN_OR_RETURN(layer.num_kv_heads,
                          own.integer_or("num_key_value_heads", kHeadRange, layer.num_kv_heads));
  return ok_status();
}

// Warns of global_head_dim and num_global_key_value_heads, which have no effect beside
// per_layer_config.
void warn_of_idle_heads(const JsonFields& fields) {
  const auto defaults = parse_json(kGemma4.defaults);
  for (const char* key : {"global_head_dim", "num_global_key_value_heads"}) {
    if (!fields.has(key) || *fields.find(key) == defaults.value(key, nlohmann::json())) continue;
    log_warning("[config] {}: {} is ignored: per_layer_config stands beside it", fields.where(),
                key);
  }
}

// Reads per_layer_config. It maps a layer's number to the values in which the layer differs from
// the config. transformers writes head sizes this way from version 5.24 on.
Status read_heads_by_layer(const JsonFields& fields, ModelConfig& config) {
  constexpr const char* kKey = "per_layer_config";
  warn_of_idle_heads(fields);
  if (!fields.has(kKey)) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const JsonFields by_layer, fields.object(kKey));
  for (const auto& [number, value] : by_layer.json().items()) {
    int layer = -1;
    const char* const end = number.data() + number.size();
    const auto parsed = std::from_chars(number.data(), end, layer);
    if (parsed.ec != std::errc() || parsed.ptr != end || layer < 0 ||
        layer >= config.num_layers()) {
      return invalid_argument("[config] {}: expected numbers of {} layers, got {}",
                              by_layer.where(), config.num_layers(), printable(number, 40));
    }
    PAGODA_ASSIGN_OR_RETURN(const JsonFields own, by_layer.object(number.c_str()));
    PAGODA_RETURN_IF_ERROR(read_own_heads(own, config.layers[layer].attention()));
  }
  for (const LayerConfig& each : config.layers) {
    const AttentionConfig& layer = each.attention();
    const AttentionConfig& first = config.first_attention(layer.window > 0);
    if (layer.head_dim == first.head_dim && layer.num_kv_heads == first.num_kv_heads) continue;
    return unsupported("[config] {}: {}: layers of one type with heads of several kinds",
                       fields.where(), kKey);
  }
  return ok_status();
}

// Reads the head sizes of full-attention layers. The last layer is one, whatever the config says.
Status read_full_heads(const JsonFields& fields, ModelConfig& config) {
  config.layers.back().attention().window = 0;
  PAGODA_ASSIGN_OR_RETURN(const bool are_values, fields.boolean_or("attention_k_eq_v", false));
  for (LayerConfig& layer : config.layers)
    layer.attention().keys_are_values = are_values && layer.attention().window == 0;
  if (fields.json().contains("per_layer_config")) return read_heads_by_layer(fields, config);
  return read_global_heads(fields, are_values, config);
}

// Reads how many of the last layers read another layer's cache, and whether their MLPs are twice as
// wide.
Status read_shared_caches(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int num_shared,
                          fields.integer_or("num_kv_shared_layers", {0, config.num_layers()}, 0));
  if (!share_caches(config, num_shared)) {
    return invalid_argument(
        "[config] {}: num_kv_shared_layers is {}, and layers before those lack a window's or a "
        "full "
        "one's",
        fields.where(), num_shared);
  }
  PAGODA_ASSIGN_OR_RETURN(const bool is_double, fields.boolean_or("use_double_wide_mlp", false));
  for (LayerConfig& layer : config.layers) {
    if (is_double && layer.attention().kv_source >= 0) layer.dense_mlp().intermediate_size *= 2;
  }
  return ok_status();
}

// Reads the width of each layer's own embedding.
Status read_per_layer_embedding(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(config.per_layer_width, fields.integer_or("hidden_size_per_layer_input",
                                                                    {0, kHiddenRange.max}, 0));
  if (config.per_layer_width == 0) return ok_status();
  constexpr const char* kVocabKey = "vocab_size_per_layer_input";
  PAGODA_ASSIGN_OR_RETURN(const int vocab_size,
                          fields.integer_or(kVocabKey, kVocabRange, config.vocab_size));
  if (vocab_size == config.vocab_size) return ok_status();
  return unsupported("[config] {}: {} {} beside a vocabulary of {} is not supported",
                     fields.where(), kVocabKey, vocab_size, config.vocab_size);
}

// The values of a mixture that neither format states.
constexpr ExpertsConfig kGemma4Experts = {.rule = {.is_normalised = true},
                                          .has_expert_scales = true};

// Reads the experts beside each layer's MLP.
Status read_parallel_experts(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const bool has_experts, fields.boolean_or("enable_moe_block", false));
  if (!has_experts) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(
      const ExpertsConfig experts,
      read_hf_experts(fields, {.other_num_experts = nullptr, .num_chosen = "top_k_experts"},
                      kGemma4Experts));
  for (LayerConfig& layer : config.layers)
    layer.mlp = ParallelMlpConfig{.dense = layer.dense_mlp(), .experts = experts};
  return ok_status();
}

// Reads the experts of a GGUF file beside its layers' MLPs.
Status read_parallel_experts_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                                  ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int num_experts,
                          keys.integer_or("expert_count", {0, kExpertRange.max}, 0));
  if (num_experts == 0) return ok_status();
  const std::vector<LayerConfig> dense = config.layers;
  PAGODA_RETURN_IF_ERROR(read_gguf_experts(checkpoint, keys, kGemma4Experts, config));
  for (std::size_t i = 0; i < dense.size(); ++i) {
    if (const ExpertsConfig* const experts = config.layers[i].experts())
      config.layers[i].mlp =
          ParallelMlpConfig{.dense = dense[i].dense_mlp(), .experts = ExpertsConfig(*experts)};
  }
  return ok_status();
}

// Sets what all layers have in common: values are normed, and scores are not divided by
// sqrt(head_dim).
void set_gemma4_attention(ModelConfig& config) {
  for (LayerConfig& layer : config.layers) {
    layer.attention().norms_values = true;
    layer.attention().score_scale = 1;
  }
}

Status finish_gemma4_hf(const JsonFields& fields, ModelConfig& config) {
  set_gemma4_attention(config);
  PAGODA_RETURN_IF_ERROR(read_full_heads(fields, config));
  PAGODA_RETURN_IF_ERROR(read_shared_caches(fields, config));
  PAGODA_RETURN_IF_ERROR(read_parallel_experts(fields, config));
  return read_per_layer_embedding(fields, config);
}

// Reads the head width of layers with a window, and which layers read another layer's cache. A
// layer without a value projection uses its keys as values.
Status finish_gemma4_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                          ModelConfig& config) {
  set_gemma4_attention(config);
  PAGODA_ASSIGN_OR_RETURN(
      const int of_windows,
      read_gguf_head_width(keys, "attention.key_length_swa", "attention.value_length_swa",
                           config.layers.front().attention().head_dim));
  PAGODA_ASSIGN_OR_RETURN(const int num_shared, keys.integer_or("attention.shared_kv_layers",
                                                                {0, config.num_layers()}, 0));
  if (!share_caches(config, num_shared)) {
    return data_loss("[gguf] key {}: {} layers lack one before them whose cache they read",
                     keys.name("attention.shared_kv_layers"), num_shared);
  }
  for (int i = 0; i < config.num_layers(); ++i) {
    AttentionConfig& layer = config.layers[i].attention();
    if (layer.window > 0) layer.head_dim = of_windows;
    layer.keys_are_values =
        layer.kv_source < 0 &&
        !checkpoint.has(fmt::format("model.layers.{}.self_attn.v_proj.weight", i));
  }
  PAGODA_ASSIGN_OR_RETURN(
      config.per_layer_width,
      keys.integer_or("embedding_length_per_layer_input", {0, kHiddenRange.max}, 0));
  return read_parallel_experts_gguf(checkpoint, keys, config);
}

float gemma4_score_scale(const GgufSizes&, const AttentionConfig&) {
  return 1;
}

}  // namespace

const Family kGemma4 = {
    .model_type = "gemma4_text",
    .causal_class = "Gemma4ForCausalLM",
    .base_class = "Gemma4TextModel",
    .gguf_architecture = "gemma4",
    .gguf_tensor_names = &kGemma4TensorNames,
    .defaults = R"({"vocab_size": 262144, "hidden_size": 2304, "intermediate_size": 9216,
                    "num_hidden_layers": 30, "num_attention_heads": 8, "num_key_value_heads": 4,
                    "head_dim": 256, "global_head_dim": 512,
                    "hidden_activation": "gelu_pytorch_tanh", "max_position_embeddings": 131072,
                    "tie_word_embeddings": true, "sliding_window": 512,
                    "hidden_size_per_layer_input": 256, "eos_token_id": 1, "bos_token_id": 2,
                    "rope_parameters": {
                      "sliding_attention": {"rope_type": "default", "rope_theta": 10000.0},
                      "full_attention": {"rope_type": "proportional",
                                         "partial_rotary_factor": 0.25, "rope_theta": 1000000.0}}})",
    .keys = kGemma4Keys,
    .reads_attention_bias = true,
    .windows = WindowRule::kPattern,
    .window_pattern = 6,
    .windows_have_own_rope = true,
    .reads_rope_scaling = false,
    .scales_embedding = true,
    .finish_hf_config = finish_gemma4_hf,
    .gguf_keys = kGemma4GgufKeys,
    .gguf_joins_gate_up = true,
    .gguf_activation = Activation::kGeluTanh,
    .gguf_score_scale = gemma4_score_scale,
    .finish_gguf_config = finish_gemma4_gguf,
    .norms = {.before_attention = "input_layernorm",
              .behind_attention = "post_attention_layernorm",
              .before_mlp = "pre_feedforward_layernorm",
              .behind_mlp = "post_feedforward_layernorm",
              .behind_per_layer = "post_per_layer_input_norm"},
    .experts = {.router = "router.proj",
                .experts = "experts",
                .all_gate_up = "experts.gate_up_proj",
                .all_down = "experts.down_proj",
                .mlx = "experts.switch_glu"},
    .qk_norm = QkNorm::kHead,
    .layer_factor = "layer_scalar"};

}  // namespace pagoda
