// Mixtral (Jiang et al., 2024, arXiv:2401.04088): Mistral's layer with experts in place of the MLP.
// The weights of the chosen experts are normalised. GGUF calls it "llama", too: a file with experts
// is a Mixtral.
#include "model/families/family_pages.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"

namespace pagoda {
namespace {

constexpr std::string_view kMixtralKeys[] = {"num_local_experts", "num_experts_per_tok"};

constexpr TensorName kMixtralOwnNames[] = {
    {"ffn_gate_inp", "block_sparse_moe.gate"},
    {"ffn_gate_exps", "block_sparse_moe.experts.w1"},
    {"ffn_down_exps", "block_sparse_moe.experts.w2"},
    {"ffn_up_exps", "block_sparse_moe.experts.w3"},
    {"attn_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
};
constexpr TensorNames kMixtralNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kMixtralOwnNames};

// The values of a mixture that neither format states.
constexpr ExpertsConfig kMixtralExperts = {.rule = {.is_normalised = true}};

Status read_mixtral_experts(const JsonFields& fields, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const ExpertsConfig experts,
                          read_hf_experts(fields,
                                          {.num_experts = "num_local_experts",
                                           .other_num_experts = nullptr,
                                           .intermediate_size = "intermediate_size"},
                                          kMixtralExperts));
  set_experts(experts, config);
  return ok_status();
}

Status read_mixtral_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                         ModelConfig& config) {
  return read_gguf_experts(checkpoint, keys, kMixtralExperts, config);
}

}  // namespace

const Family kMixtral = {
    .model_type = "mixtral",
    .causal_class = "MixtralForCausalLM",
    .gguf_architecture = "llama",
    .gguf_tensor_names = &kMixtralNames,
    .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 14336,
                    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 8,
                    "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
                    "num_local_experts": 8, "num_experts_per_tok": 2, "rope_theta": 1000000.0,
                    "eos_token_id": 2, "bos_token_id": 1})",
    .keys = kMixtralKeys,
    .windows = WindowRule::kAllLayers,
    .finish_hf_config = read_mixtral_experts,
    .gguf_keys = kGgufExpertKeys,
    .gguf_rope_style = RopeStyle::kAdjacent,
    .finish_gguf_config = read_mixtral_gguf,
    .experts = {.router = "block_sparse_moe.gate",
                .experts = "block_sparse_moe.experts",
                .gate = "w1",
                .up = "w3",
                .down = "w2"}};

}  // namespace pagoda
