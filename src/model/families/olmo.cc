// OLMoE (Muennighoff et al., 2024, arXiv:2409.02060): Llama's layer with experts, and with q and k
// normed over all heads together.
//
// OLMo 2 (Team OLMo, 2025, arXiv:2501.00656) and OLMo 3 (2025): norms after the blocks and none
// before them; q and k are normed over all heads together. OLMo 3 has windows on three layers of
// four, and YaRN on the other layers alone. GGUF calls both olmo2: a file with a window is an OLMo
// 3.
#include "model/config_limits.h"
#include "model/families/family_pages.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"

namespace pagoda {
namespace {

constexpr TensorName kOlmoOwnNames[] = {
    {"post_attention_norm", "post_attention_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

constexpr TensorNames kOlmoTensorNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kOlmoOwnNames};

constexpr LayerNormNames kOlmoNorms = {.before_attention = "",
                                       .behind_attention = "post_attention_layernorm",
                                       .before_mlp = "",
                                       .behind_mlp = "post_feedforward_layernorm"};

constexpr std::string_view kOlmo3GgufKeys[] = {"attention.sliding_window_pattern",
                                               "rope.freq_base_swa"};

constexpr std::string_view kOlmoeKeys[] = {"num_experts", "num_local_experts",
                                           "num_experts_per_tok", "norm_topk_prob", "clip_qkv"};

Status read_olmoe(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(
      const ExpertsConfig experts,
      read_hf_experts(fields,
                      {.intermediate_size = "intermediate_size", .is_normalised = "norm_topk_prob"},
                      {}));
  set_experts(experts, config);
  PAGODA_ASSIGN_OR_RETURN(const double limit, fields.number_or("clip_qkv", kClampRange, 0));
  for (LayerConfig& layer : config.layers) {
    std::get<AttentionConfig>(layer.mixer).qkv_limit = static_cast<float>(limit);
  }
  return ok_status();
}

Status read_olmoe_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                       ModelConfig& config) {
  return read_gguf_experts(checkpoint, keys, {}, config);
}

}  // namespace

const Family kOlmoe = {
    .model_type = "olmoe",
    .causal_class = "OlmoeForCausalLM",
    .gguf_architecture = "olmoe",
    .defaults = R"({"vocab_size": 50304, "hidden_size": 2048, "intermediate_size": 2048,
                    "num_hidden_layers": 16, "num_attention_heads": 16,
                    "max_position_embeddings": 4096, "rms_norm_eps": 1e-5, "num_experts": 64,
                    "num_experts_per_tok": 8, "eos_token_id": 50279})",
    .keys = kOlmoeKeys,
    .reads_attention_bias = true,
    .finish_hf_config = read_olmoe,
    .gguf_keys = kGgufExpertKeys,
    .finish_gguf_config = read_olmoe_gguf,
    .qk_norm = QkNorm::kRow};

const Family kOlmo2 = {
    .model_type = "olmo2",
    .causal_class = "Olmo2ForCausalLM",
    .gguf_architecture = "olmo2",
    .gguf_tensor_names = &kOlmoTensorNames,
    .defaults = R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008,
                    "num_hidden_layers": 32, "num_attention_heads": 32,
                    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5,
                    "eos_token_id": 50279})",
    .reads_attention_bias = true,
    .norms = kOlmoNorms,
    .qk_norm = QkNorm::kRow};

const Family kOlmo3 = {
    .model_type = "olmo3",
    .causal_class = "Olmo3ForCausalLM",
    .gguf_architecture = "olmo2",
    .gguf_tensor_names = &kOlmoTensorNames,
    .defaults = R"({"vocab_size": 50304, "hidden_size": 4096, "intermediate_size": 11008,
                    "num_hidden_layers": 32, "num_attention_heads": 32,
                    "max_position_embeddings": 2048, "rms_norm_eps": 1e-5, "rope_theta": 500000,
                    "sliding_window": 4096, "eos_token_id": 50279})",
    .reads_attention_bias = true,
    .windows = WindowRule::kPattern,
    .window_pattern = 4,
    .windows_have_own_rope = true,
    .gguf_keys = kOlmo3GgufKeys,
    .norms = kOlmoNorms,
    .qk_norm = QkNorm::kRow};

}  // namespace pagoda
