// Granite 3's mixtures (IBM, 2024): Granite's layer with experts in place of the MLP. A softmax over
// the logits of the chosen experts weighs them. Some (granitemoeshared) have a shared expert.
#include "model/families/family_pages.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"

namespace pagoda {
namespace {

constexpr std::string_view kGraniteMoeKeys[] = {"attention_multiplier",    "embedding_multiplier",
                                                "logits_scaling",          "residual_multiplier",
                                                "num_local_experts",       "num_experts_per_tok",
                                                "shared_intermediate_size"};
constexpr std::string_view kGraniteMoeGgufKeys[] = {"attention.scale",
                                                    "embedding_scale",
                                                    "logit_scale",
                                                    "residual_scale",
                                                    "expert_count",
                                                    "expert_used_count",
                                                    "expert_feed_forward_length",
                                                    "expert_shared_feed_forward_length",
                                                    "expert_weights_norm",
                                                    "expert_gating_func"};

constexpr TensorName kGraniteMoeOwnNames[] = {
    {"ffn_gate_inp", "block_sparse_moe.router.layer"},
    {"ffn_gate_exps", "block_sparse_moe.experts.gate_proj"},
    {"ffn_up_exps", "block_sparse_moe.experts.up_proj"},
    {"ffn_down_exps", "block_sparse_moe.experts.down_proj"},
    {"ffn_gate_shexp", "shared_mlp.gate_proj"},
    {"ffn_up_shexp", "shared_mlp.up_proj"},
    {"ffn_down_shexp", "shared_mlp.output_linear"},
    {"attn_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
};
constexpr TensorNames kGraniteMoeNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kGraniteMoeOwnNames};

// The values of a mixture that neither format states. The softmax normalises weights.
constexpr ExpertsConfig kGraniteMoeChoice = {.rule = {.gating = Gating::kSoftmaxOfChosen}};

Status read_granite_moe_experts(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(ExpertsConfig experts,
                          read_hf_experts(fields,
                                          {.num_experts = "num_local_experts",
                                           .other_num_experts = nullptr,
                                           .intermediate_size = "intermediate_size"},
                                          kGraniteMoeChoice));
  PAGODA_ASSIGN_OR_RETURN(
      experts.shared_intermediate_size,
      fields.integer_or("shared_intermediate_size", {0, kIntermediateRange.max}, 0));
  set_experts(experts, config);
  return ok_status();
}

Status read_granite_moe_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                             ModelConfig& config) {
  return read_gguf_experts(checkpoint, keys, kGraniteMoeChoice, config);
}

constexpr std::string_view kGraniteMoeDefaults =
    R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                    "num_hidden_layers": 32, "num_attention_heads": 32,
                    "max_position_embeddings": 2048, "embedding_multiplier": 1.0,
                    "logits_scaling": 1.0, "residual_multiplier": 1.0,
                    "attention_multiplier": 1.0, "num_local_experts": 8,
                    "num_experts_per_tok": 2, "eos_token_id": 2, "bos_token_id": 1})";

constexpr ExpertNames kGraniteMoeExperts = {.router = "block_sparse_moe.router.layer",
                                            .experts = "block_sparse_moe.experts",
                                            .all_gate_up = "block_sparse_moe.input_linear",
                                            .all_down = "block_sparse_moe.output_linear",
                                            .shared = "shared_mlp",
                                            .shared_gate_up = "input_linear",
                                            .shared_down = "output_linear"};

}  // namespace

const Family kGraniteMoe = {.model_type = "granitemoe",
                            .causal_class = "GraniteMoeForCausalLM",
                            .gguf_architecture = "granitemoe",
                            .gguf_tensor_names = &kGraniteMoeNames,
                            .defaults = kGraniteMoeDefaults,
                            .keys = kGraniteMoeKeys,
                            .reads_attention_bias = true,
                            .finish_hf_config = read_granite_moe_experts,
                            .gguf_keys = kGraniteMoeGgufKeys,
                            .gguf_rope_style = RopeStyle::kAdjacent,
                            .finish_gguf_config = read_granite_moe_gguf,
                            .experts = kGraniteMoeExperts};

const Family kGraniteMoeShared = {.model_type = "granitemoeshared",
                                  .causal_class = "GraniteMoeSharedForCausalLM",
                                  .gguf_architecture = "granitemoe",
                                  .gguf_tensor_names = &kGraniteMoeNames,
                                  .defaults = kGraniteMoeDefaults,
                                  .keys = kGraniteMoeKeys,
                                  .reads_attention_bias = true,
                                  .finish_hf_config = read_granite_moe_experts,
                                  .gguf_keys = kGraniteMoeGgufKeys,
                                  .gguf_rope_style = RopeStyle::kAdjacent,
                                  .finish_gguf_config = read_granite_moe_gguf,
                                  .experts = kGraniteMoeExperts};

}  // namespace pagoda
