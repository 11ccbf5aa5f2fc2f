// gpt-oss (OpenAI, 2025, arXiv:2508.10925): every other layer has a window, each head a sink, and
// every layer experts with biases. The chosen experts' logits decide their weights. Gates and up
// parts have limits.
#include "model/families/family_pages.h"
#include "model/gguf/gguf_experts.h"
#include "model/hf/hf_experts.h"

namespace pagoda {
namespace {

constexpr std::string_view kGptOssKeys[] = {
    "experts_per_token",  // repeats num_experts_per_tok, as the next key repeats another
    "initial_context_length", "num_experts_per_tok", "num_local_experts",
    "swiglu_alpha",           "swiglu_limit"};

constexpr TensorName kGptOssOwnNames[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_sinks", "self_attn.sinks"},
    {"ffn_gate_inp", "mlp.router"},
    {"post_attention_norm", "post_attention_layernorm"},
};
constexpr TensorNames kGptOssNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kGptOssOwnNames};

// The values of a mixture that neither format states.
constexpr ExpertsConfig kGptOssExperts = {
    .rule = {.gating = Gating::kSoftmaxOfChosen}, .has_router_bias = true, .has_bias = true};

void set_sinks(ModelConfig& config) {
  for (LayerConfig& layer : config.layers) layer.attention().has_sinks = true;
}

Status read_gpt_oss(const JsonFields& fields, ModelConfig& config) {
  config.glu.activation = Activation::kSwigluOai;
  PAGODA_ASSIGN_OR_RETURN(const double alpha,
                          fields.number_or("swiglu_alpha", {-1e3, 1e3}, config.glu.alpha));
  PAGODA_ASSIGN_OR_RETURN(const double limit,
                          fields.number_or("swiglu_limit", {1e-6, 1e6}, config.glu.limit));
  config.glu.alpha = static_cast<float>(alpha);
  config.glu.limit = static_cast<float>(limit);
  set_sinks(config);
  PAGODA_ASSIGN_OR_RETURN(const ExpertsConfig experts,
                          read_hf_experts(fields,
                                          {.num_experts = "num_local_experts",
                                           .other_num_experts = nullptr,
                                           .intermediate_size = "intermediate_size"},
                                          kGptOssExperts));
  set_experts(experts, config);
  return ok_status();
}

Status read_gpt_oss_gguf(const Checkpoint& checkpoint, const ArchitectureKeys& keys,
                         ModelConfig& config) {
  set_sinks(config);
  return read_gguf_experts(checkpoint, keys, kGptOssExperts, config);
}

}  // namespace

const Family kGptOss = {
    .model_type = "gpt_oss",
    .causal_class = "GptOssForCausalLM",
    .gguf_architecture = "gpt-oss",
    .gguf_tensor_names = &kGptOssNames,
    .defaults = R"({"vocab_size": 201088, "hidden_size": 2880, "intermediate_size": 2880,
                    "num_hidden_layers": 36, "num_attention_heads": 64, "num_key_value_heads": 8,
                    "head_dim": 64, "max_position_embeddings": 131072, "rms_norm_eps": 1e-5,
                    "sliding_window": 128, "attention_bias": true, "rope_theta": 150000.0,
                    "num_local_experts": 128, "num_experts_per_tok": 4,
                    "rope_parameters": {
                      "rope_type": "yarn", "factor": 32.0, "beta_fast": 32.0, "beta_slow": 1.0,
                      "truncate": false, "original_max_position_embeddings": 4096}})",
    .keys = kGptOssKeys,
    .reads_attention_bias = true,
    .windows = WindowRule::kPattern,
    .window_pattern = 2,
    .finish_hf_config = read_gpt_oss,
    .gguf_keys = kGgufExpertKeys,
    .gguf_lacks_windows = true,
    .gguf_yarn_truncates = false,
    .gguf_activation = Activation::kSwigluOai,
    .finish_gguf_config = read_gpt_oss_gguf,
    .experts = {.router = "mlp.router", .are_transposed = true, .are_interleaved = true}};

}  // namespace pagoda
