// Gemma 2 (Gemma Team, 2024, arXiv:2408.00118) and Gemma 3 (2025, arXiv:2503.19786): embeddings
// times sqrt(hidden), norms with weights 1 + w before and after each block, gelu gates, scores
// scaled by query_pre_attn_scalar. Gemma 2 has windows on every second layer, and soft caps on
// scores and logits. Gemma 3 norms each head's q and k. It has windows on five layers of six, and
// rotates these layers by another theta.
#include "model/config_limits.h"
#include "model/families/family_pages.h"
#include "model/gguf/gguf_architecture_keys.h"

namespace pagoda {
namespace {

constexpr TensorName kGemmaOwnNames[] = {
    {"attn_norm", "input_layernorm"},
    {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"},
    {"post_ffw_norm", "post_feedforward_layernorm"},
};

constexpr TensorNames kGemmaTensorNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kGemmaOwnNames};

constexpr LayerNormNames kGemmaNorms = {.before_attention = "input_layernorm",
                                        .behind_attention = "post_attention_layernorm",
                                        .before_mlp = "pre_feedforward_layernorm",
                                        .behind_mlp = "post_feedforward_layernorm"};

// attn_logit_softcapping is no key of Gemma 3's: its files may only set it to null or 0.
constexpr std::string_view kGemma2Keys[] = {"attn_logit_softcapping", "final_logit_softcapping",
                                            "hidden_activation", "query_pre_attn_scalar"};
constexpr std::string_view kGemma3Keys[] = {"final_logit_softcapping", "hidden_activation",
                                            "query_pre_attn_scalar", "rope_local_base_freq",
                                            "sliding_window_pattern"};
constexpr std::string_view kGemma2GgufKeys[] = {
    "attention.sliding_window_pattern", "attn_logit_softcapping", "final_logit_softcapping"};
constexpr std::string_view kGemma3GgufKeys[] = {"attention.sliding_window_pattern",
                                                "final_logit_softcapping", "rope.freq_base_swa"};

constexpr NumberRange kCapRange{0, 1e6};
constexpr int kLargestGemma2Layers = 46, kLargestGemma3Layers = 62;

// Returns the scale of scores. GGUF has no key for it (query_pre_attn_scalar). It follows from the
// width of a head, except in the largest model of each generation. As in llama.cpp, that model is
// recognised by its number of layers.
template <int kLargestLayers>
float gemma_score_scale(const GgufSizes& sizes, const AttentionConfig& attention) {
  if (sizes.num_layers == kLargestLayers && sizes.hidden_size >= attention.num_heads)
    return default_score_scale(sizes.hidden_size / attention.num_heads);
  return default_score_scale(attention.head_dim);
}

// Reads the cap of Gemma 2's scores, which its files may leave out.
Status finish_gemma2(const Checkpoint&, const ArchitectureKeys& keys, ModelConfig& config) {
  PAGODA_ASSIGN_OR_RETURN(const double cap,
                          keys.number_or("attn_logit_softcapping", kCapRange, 50));
  for (LayerConfig& layer : config.layers) layer.attention().score_cap = static_cast<float>(cap);
  return ok_status();
}

}  // namespace

const Family kGemma2 = {
    .model_type = "gemma2",
    .causal_class = "Gemma2ForCausalLM",
    .gguf_architecture = "gemma2",
    .gguf_tensor_names = &kGemmaTensorNames,
    .defaults = R"({"vocab_size": 256000, "hidden_size": 2304, "intermediate_size": 9216,
                    "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
                    "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
                    "max_position_embeddings": 8192, "tie_word_embeddings": true,
                    "query_pre_attn_scalar": 256, "sliding_window": 4096,
                    "final_logit_softcapping": 30.0, "attn_logit_softcapping": 50.0,
                    "eos_token_id": 1, "bos_token_id": 2})",
    .keys = kGemma2Keys,
    .reads_attention_bias = true,
    .windows = WindowRule::kPattern,
    .window_pattern = 2,
    .norms_lack_one = true,
    .scales_embedding = true,
    .gguf_keys = kGemma2GgufKeys,
    .gguf_lacks_windows = true,
    .gguf_logits_cap = 30,
    .gguf_activation = Activation::kGeluTanh,
    .gguf_score_scale = gemma_score_scale<kLargestGemma2Layers>,
    .finish_gguf_config = finish_gemma2,
    .norms = kGemmaNorms};

const Family kGemma3 = {
    .model_type = "gemma3_text",
    .causal_class = "Gemma3ForCausalLM",
    .base_class = "Gemma3TextModel",
    .gguf_architecture = "gemma3",
    .gguf_tensor_names = &kGemmaTensorNames,
    .defaults = R"({"vocab_size": 262208, "hidden_size": 2304, "intermediate_size": 9216,
                    "num_hidden_layers": 26, "num_attention_heads": 8, "num_key_value_heads": 4,
                    "head_dim": 256, "hidden_activation": "gelu_pytorch_tanh",
                    "max_position_embeddings": 131072, "tie_word_embeddings": true,
                    "query_pre_attn_scalar": 256, "sliding_window": 4096,
                    "sliding_window_pattern": 6, "rope_theta": 1000000,
                    "rope_local_base_freq": 10000, "eos_token_id": 1, "bos_token_id": 2})",
    .keys = kGemma3Keys,
    .reads_attention_bias = true,
    .windows = WindowRule::kPattern,
    .window_pattern = 6,
    .windows_have_own_rope = true,
    .norms_lack_one = true,
    .scales_embedding = true,
    .gguf_keys = kGemma3GgufKeys,
    .gguf_lacks_windows = true,
    .gguf_window_theta = 10000,
    .gguf_activation = Activation::kGeluTanh,
    .gguf_score_scale = gemma_score_scale<kLargestGemma3Layers>,
    .norms = kGemmaNorms,
    .qk_norm = QkNorm::kHead};

}  // namespace pagoda
