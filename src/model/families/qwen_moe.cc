// Qwen1.5-MoE and Qwen2's mixtures (Yang et al., 2024, arXiv:2407.10671), which have a shared expert
// with a gate, and Qwen3's (2025, arXiv:2505.09388): the layers of Qwen2 and Qwen3 with experts in
// place of the MLP. Qwen3-VL's text tower computes as Qwen3's mixtures do, and always normalises
// weights. Its folders hold the transposes of experts' matrices.
#include <algorithm>
#include <vector>

#include "model/families/family_pages.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"

namespace pagoda {
namespace {

constexpr std::string_view kQwenMoeKeys[] = {"num_experts",
                                             "num_local_experts",
                                             "num_experts_per_tok",
                                             "moe_intermediate_size",
                                             "norm_topk_prob",
                                             "decoder_sparse_step",
                                             "mlp_only_layers",
                                             "shared_expert_intermediate_size",
                                             "qkv_bias"};

constexpr std::string_view kQwen3VlMoeKeys[] = {
    "decoder_sparse_step", "mlp_only_layers",     "moe_intermediate_size",
    "mrope_interleaved",   "mrope_section",       "norm_topk_prob",
    "num_experts",         "num_experts_per_tok", "num_local_experts"};

constexpr std::string_view kQwen3VlMoeGgufKeys[] = {
    "expert_count",        "expert_used_count",       "expert_feed_forward_length",
    "expert_weights_norm", "rope.dimension_sections", "n_deepstack_layers"};

// The values of mixtures that neither format need state.
constexpr ExpertsConfig kQwen2Experts = {.has_shared_gate = true};
constexpr ExpertsConfig kQwen3Experts = {.rule = {.is_normalised = true}};

// Reads the window, which all layers of Qwen3's mixtures have or none.
Status read_qwen_moe_window(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const bool has_window, fields.boolean_or("use_sliding_window", false));
  if (!has_window) return ok_status();
  PAGODA_ASSIGN_OR_RETURN(const int window, fields.integer_or("sliding_window", kPositionRange, 0));
  for (LayerConfig& layer : config.layers) layer.attention().window = window;
  return ok_status();
}

// Sets the experts of every decoder_sparse_step-th layer, except those in mlp_only_layers.
Status set_qwen_experts(const JsonFields& fields, const ExpertsConfig& experts,
                        ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const int step, fields.integer_or("decoder_sparse_step", kLayerRange, 1));
  PAGODA_ASSIGN_OR_RETURN(const std::vector<std::int64_t> dense,
                          fields.integers("mlp_only_layers", {0, kLayerRange.max}));
  set_experts(
      experts,
      [&](int layer) {
        return (layer + 1) % step == 0 && std::ranges::find(dense, layer) == dense.end();
      },
      config);
  return ok_status();
}

Status read_qwen3(const JsonFields& fields, ModelConfig& config) {
  PAGODA_RETURN_IF_ERROR(read_qwen_moe_window(fields, config));
  PAGODA_ASSIGN_OR_RETURN(
      const ExpertsConfig experts,
      read_hf_experts(fields, {.is_normalised = "norm_topk_prob"}, kQwen3Experts));
  return set_qwen_experts(fields, experts, config);
}

Status read_qwen3_vl(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const ExpertsConfig experts, read_hf_experts(fields, {}, kQwen3Experts));
  return set_qwen_experts(fields, experts, config);
}

Status read_qwen2(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(
      ExpertsConfig experts,
      read_hf_experts(fields, {.is_normalised = "norm_topk_prob"}, kQwen2Experts));
  PAGODA_ASSIGN_OR_RETURN(experts.shared_intermediate_size,
                          fields.integer("shared_expert_intermediate_size", kIntermediateRange));
  PAGODA_ASSIGN_OR_RETURN(config.attention_bias, fields.boolean_or("qkv_bias", true));
  return set_qwen_experts(fields, experts, config);
}

Status read_qwen3_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                       ModelConfig& config) {
  return read_gguf_experts(checkpoint, keys, kQwen3Experts, config);
}

Status read_qwen2_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                       ModelConfig& config) {
  return read_gguf_experts(checkpoint, keys, kQwen2Experts, config);
}

}  // namespace

const Family kQwen2Moe = {
    .model_type = "qwen2_moe",
    .causal_class = "Qwen2MoeForCausalLM",
    .gguf_architecture = "qwen2moe",
    .defaults = R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632,
                    "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
                    "max_position_embeddings": 32768, "sliding_window": 4096,
                    "max_window_layers": 28, "moe_intermediate_size": 1408,
                    "shared_expert_intermediate_size": 5632, "num_experts_per_tok": 4,
                    "num_experts": 60})",
    .keys = kQwenMoeKeys,
    .windows = WindowRule::kByLayer,
    .finish_hf_config = read_qwen2,
    .gguf_keys = kGgufExpertKeys,
    .finish_gguf_config = read_qwen2_gguf};

const Family kQwen3Moe = {
    .model_type = "qwen3_moe",
    .causal_class = "Qwen3MoeForCausalLM",
    .gguf_architecture = "qwen3moe",
    .defaults = R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 6144,
                    "num_hidden_layers": 24, "num_attention_heads": 32, "num_key_value_heads": 4,
                    "max_position_embeddings": 32768, "sliding_window": 4096,
                    "moe_intermediate_size": 768, "num_experts_per_tok": 8,
                    "num_experts": 128})",
    .keys = kQwenMoeKeys,
    .reads_attention_bias = true,
    .finish_hf_config = read_qwen3,
    .gguf_keys = kGgufExpertKeys,
    .finish_gguf_config = read_qwen3_gguf,
    .qk_norm = QkNorm::kHead};

const Family kQwen3VlMoe = {
    .model_type = "qwen3_vl_moe_text",
    .causal_class = "Qwen3VLMoeForConditionalGeneration",
    .base_class = "Qwen3VLMoeTextModel",
    .gguf_architecture = "qwen3vlmoe",
    .defaults = R"({"vocab_size": 151936, "hidden_size": 2048, "intermediate_size": 5632,
                    "num_hidden_layers": 24, "num_attention_heads": 16, "num_key_value_heads": 16,
                    "max_position_embeddings": 128000, "rope_theta": 500000,
                    "moe_intermediate_size": 1408, "num_experts_per_tok": 4, "num_experts": 60})",
    .keys = kQwen3VlMoeKeys,
    .reads_attention_bias = true,
    .finish_hf_config = read_qwen3_vl,
    .gguf_keys = kQwen3VlMoeGgufKeys,
    .finish_gguf_config = read_qwen3_gguf,
    .experts = {.are_transposed = true},
    .qk_norm = QkNorm::kHead};

}  // namespace pagoda
