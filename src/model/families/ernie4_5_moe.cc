// ERNIE 4.5's mixtures (Baidu, 2025): Llama's layer, rotated in adjacent pairs. Some layers have
// experts, chosen by a biased softmax, and a shared expert.
#include "model/families/family_pages.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"

namespace pagoda {
namespace {

// The values of a mixture that neither format need state.
constexpr ExpertsConfig kErnieExperts = {.rule = {.is_normalised = true, .least_sum = 1e-12f},
                                         .has_choice_bias = true};

constexpr std::string_view kErnieKeys[] = {"moe_num_experts",       "moe_k",
                                           "moe_intermediate_size", "moe_num_shared_experts",
                                           "moe_norm_min",          "moe_layer_start_index",
                                           "moe_layer_end_index",   "moe_layer_interval"};

// Sets the experts of every n-th layer from the first to the last one that the config names.
Status set_ernie_layers(const JsonFields& fields, const ExpertsConfig& experts,
                        ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int first,
                          fields.integer_or("moe_layer_start_index", {0, kLayerRange.max}, 1));
  PAGODA_ASSIGN_OR_RETURN(const int last,
                          fields.integer_or("moe_layer_end_index", {-1, kLayerRange.max}, -1));
  PAGODA_ASSIGN_OR_RETURN(const int interval,
                          fields.integer_or("moe_layer_interval", kLayerRange, 1));
  const int end = last < 0 ? config.num_layers() : last + 1;
  set_experts(
      experts,
      [=](int layer) { return (layer + 1) % interval == 0 && layer >= first && layer < end; },
      config);
  return ok_status();
}

Status read_ernie_experts(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(ExpertsConfig experts, read_hf_experts(fields,
                                                                 {.num_experts = "moe_num_experts",
                                                                  .other_num_experts = nullptr,
                                                                  .num_chosen = "moe_k"},
                                                                 kErnieExperts));
  PAGODA_ASSIGN_OR_RETURN(const double least,
                          fields.number_or("moe_norm_min", {0, 1}, experts.rule.least_sum));
  experts.rule.least_sum = static_cast<float>(least);
  PAGODA_ASSIGN_OR_RETURN(const int num_shared,
                          fields.integer_or("moe_num_shared_experts", {0, kMostExperts}, 2));
  experts.shared_intermediate_size = num_shared * experts.intermediate_size;
  return set_ernie_layers(fields, experts, config);
}

constexpr std::string_view kErnieGgufKeys[] = {"expert_count",
                                               "expert_used_count",
                                               "expert_feed_forward_length",
                                               "expert_shared_count",
                                               "leading_dense_block_count",
                                               "expert_shared_feed_forward_length",
                                               "expert_weights_norm",
                                               "expert_gating_func",
                                               "expert_weights_scale",
                                               "interleave_moe_layer_step"};

Status read_ernie_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                       ModelConfig& config) {
  return read_gguf_experts(checkpoint, keys, kErnieExperts, config);
}

constexpr TensorName kErnieOwnNames[] = {
    {"attn_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"exp_probs_b", "mlp.moe_statics.e_score_correction_bias"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
};
constexpr TensorNames kErnieNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kErnieOwnNames};

}  // namespace

const Family kErnie45Moe = {
    .model_type = "ernie4_5_moe",
    .causal_class = "Ernie4_5_MoeForCausalLM",
    .gguf_architecture = "ernie4_5-moe",
    .gguf_tensor_names = &kErnieNames,
    .defaults = R"({"vocab_size": 103424, "hidden_size": 2560, "intermediate_size": 12288,
                    "num_hidden_layers": 28, "num_attention_heads": 20, "num_key_value_heads": 4,
                    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
                    "rope_theta": 500000.0, "tie_word_embeddings": true,
                    "moe_intermediate_size": 1536, "moe_k": 6, "moe_num_experts": 64,
                    "eos_token_id": 2, "bos_token_id": 1})",
    .keys = kErnieKeys,
    .rope_style = RopeStyle::kAdjacent,
    .finish_hf_config = read_ernie_experts,
    .gguf_keys = kErnieGgufKeys,
    .gguf_rope_style = RopeStyle::kAdjacent,
    .finish_gguf_config = read_ernie_gguf,
    .experts = {.choice_bias = "mlp.moe_statics.e_score_correction_bias",
                .shared = "mlp.shared_experts"}};

}  // namespace pagoda
