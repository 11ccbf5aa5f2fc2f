// GLM-4.5 and its successors (GLM-4.5 Team, 2025, arXiv:2508.06471): Llama's layer with biases on q,
// k and v, and half of a head rotated. All layers but the first ones have experts, chosen by biased
// sigmoids as DeepSeek-V3 does it, and a shared expert.
#include "model/families/family_pages.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"

namespace pagoda {
namespace {

// The values of a mixture that neither format need state.
constexpr ExpertsConfig kGlm4MoeExperts = {
    .rule = {.gating = Gating::kSigmoid, .is_normalised = true, .sum_offset = 1e-20f},
    .has_choice_bias = true};

constexpr std::string_view kGlm4MoeKeys[] = {"partial_rotary_factor",
                                             "n_routed_experts",
                                             "num_experts_per_tok",
                                             "moe_intermediate_size",
                                             "n_shared_experts",
                                             "n_group",
                                             "topk_group",
                                             "norm_topk_prob",
                                             "routed_scaling_factor",
                                             "use_qk_norm",
                                             "first_k_dense_replace",
                                             "num_nextn_predict_layers"};

Status read_glm4_moe_groups(const JsonFields& fields, ExpertsConfig& experts) {
  PAGODA_ASSIGN_OR_RETURN(experts.rule.num_groups,
                          fields.integer_or("n_group", {1, kMostExpertGroups}, 1));
  PAGODA_ASSIGN_OR_RETURN(
      experts.rule.num_chosen_groups,
      fields.integer_or("topk_group", {1, experts.rule.num_groups}, experts.rule.num_groups));
  return ok_status();
}

Status read_glm4_moe_experts(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(ExpertsConfig experts,
                          read_hf_experts(fields,
                                          {.num_experts = "n_routed_experts",
                                           .other_num_experts = nullptr,
                                           .is_normalised = "norm_topk_prob"},
                                          kGlm4MoeExperts));
  PAGODA_RETURN_IF_ERROR(read_glm4_moe_groups(fields, experts));
  PAGODA_ASSIGN_OR_RETURN(const double factor,
                          fields.number_or("routed_scaling_factor", {0, 1e6}, 1));
  experts.rule.factor = static_cast<float>(factor);
  PAGODA_ASSIGN_OR_RETURN(const int num_shared,
                          fields.integer_or("n_shared_experts", {0, kMostExperts}, 1));
  experts.shared_intermediate_size = num_shared * experts.intermediate_size;
  PAGODA_ASSIGN_OR_RETURN(const int num_dense,
                          fields.integer_or("first_k_dense_replace", {0, kLayerRange.max}, 1));
  set_experts(
      experts, [num_dense](int layer) { return layer >= num_dense; }, config);
  return ok_status();
}

Status finish_glm4_moe(const JsonFields& fields, ModelConfig& config) {
  config.attention_output_bias = false;
  PAGODA_ASSIGN_OR_RETURN(config.num_draft_layers,
                          fields.integer_or("num_nextn_predict_layers", {0, kLayerRange.max}, 0));
  PAGODA_ASSIGN_OR_RETURN(const bool has_norms, fields.boolean_or("use_qk_norm", false));
  for (LayerConfig& layer : config.layers)
    layer.attention().qk_norm = has_norms ? QkNorm::kHead : QkNorm::kNone;
  return read_glm4_moe_experts(fields, config);
}

Status read_glm4_moe_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                          ModelConfig& config) {
  for (int i = 0; i < config.num_layers(); ++i) {
    const bool has_norms = checkpoint.has(layer_prefix(i) + "self_attn.q_norm.weight");
    config.layers[i].attention().qk_norm = has_norms ? QkNorm::kHead : QkNorm::kNone;
  }
  return read_gguf_experts(checkpoint, keys, kGlm4MoeExperts, config);
}

constexpr TensorName kGlm4MoeOwnNames[] = {
    {"attn_norm", "input_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_gate_shexp", "mlp.shared_experts.gate_proj"},
    {"ffn_up_shexp", "mlp.shared_experts.up_proj"},
    {"ffn_down_shexp", "mlp.shared_experts.down_proj"},
};
constexpr TensorNames kGlm4MoeNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kGlm4MoeOwnNames};

constexpr std::string_view kGlm4MoeGgufKeys[] = {"expert_count",
                                                 "expert_used_count",
                                                 "expert_feed_forward_length",
                                                 "expert_shared_count",
                                                 "expert_weights_scale",
                                                 "expert_weights_norm",
                                                 "expert_gating_func",
                                                 "expert_group_count",
                                                 "expert_group_used_count",
                                                 "leading_dense_block_count",
                                                 "nextn_predict_layers",
                                                 "rope.dimension_count"};

}  // namespace

const Family kGlm4Moe = {
    .model_type = "glm4_moe",
    .causal_class = "Glm4MoeForCausalLM",
    .gguf_architecture = "glm4moe",
    .gguf_tensor_names = &kGlm4MoeNames,
    .defaults = R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 10944,
                    "num_hidden_layers": 46, "num_attention_heads": 96, "num_key_value_heads": 8,
                    "head_dim": 128, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
                    "partial_rotary_factor": 0.5, "moe_intermediate_size": 1408,
                    "num_experts_per_tok": 8, "n_routed_experts": 128, "norm_topk_prob": true})",
    .keys = kGlm4MoeKeys,
    .reads_attention_bias = true,
    .finish_hf_config = finish_glm4_moe,
    .gguf_keys = kGlm4MoeGgufKeys,
    .finish_gguf_config = read_glm4_moe_gguf,
    .experts = {.shared = "mlp.shared_experts"}};

}  // namespace pagoda
