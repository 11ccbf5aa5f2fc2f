// Gemma 2 (Gemma Team, 2024, arXiv:2408.00118) and Gemma 3 (2025, arXiv:2503.19786): embeddings times
// sqrt(hidden), a norm before and one behind each block, whose weights are 1 + w, gelu in the gates,
// scores scaled by query_pre_attn_scalar. Gemma 2 has windows on every second layer and bends scores
// and logits by soft caps; Gemma 3 has them on five layers of six, turned by a theta of their own, and
// norms each head's q and k. Gemma 4 (2026) norms v too and scores unscaled; its layers without a
// window have larger heads, of which a quarter turns, and may take keys as values; late ones read the
// cache of an earlier one; a short embedding of its own gates what a layer adds at its end, and a
// factor multiplies what leaves it.
#include "model/family.h"

namespace pagoda {
namespace {

constexpr TensorName kGemmaOwnNames[] = {
    {"attn_norm", "input_layernorm"},          {"post_attention_norm", "post_attention_layernorm"},
    {"ffn_norm", "pre_feedforward_layernorm"}, {"post_ffw_norm", "post_feedforward_layernorm"},
    {"inp_gate", "per_layer_input_gate"},  // Gemma 4's, as those that follow
    {"proj", "per_layer_projection"},          {"post_norm", "post_per_layer_input_norm"},
    {"layer_output_scale", "layer_scalar"},
};

constexpr TensorNames kGemmaTensorNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kGemmaOwnNames};

// Gemma 4's short embeddings beside what all families have.
constexpr TensorName kGemma4ModelNames[] = {
    {"token_embd", "model.embed_tokens"},
    {"output_norm", "model.norm"},
    {"output", "lm_head"},
    {"per_layer_token_embd", "model.embed_tokens_per_layer"},
    {"per_layer_model_proj", "model.per_layer_model_projection"},
    {"per_layer_proj_norm", "model.per_layer_projection_norm"},
};
constexpr TensorNames kGemma4TensorNames = {
    .of_model = kGemma4ModelNames, .of_layer = kLayerTensorNames, .of_family = kGemmaOwnNames};

constexpr LayerNormNames kGemmaNorms = {.before_attention = "input_layernorm",
                                        .behind_attention = "post_attention_layernorm",
                                        .before_mlp = "pre_feedforward_layernorm",
                                        .behind_mlp = "post_feedforward_layernorm"};

// Gemma 3's files may have a cap of scores, which nothing reads.
constexpr std::string_view kGemma2Keys[] = {"attn_logit_softcapping", "final_logit_softcapping",
                                            "hidden_activation", "query_pre_attn_scalar"};
constexpr std::string_view kGemma3Keys[] = {"final_logit_softcapping", "hidden_activation",
                                            "query_pre_attn_scalar", "rope_local_base_freq",
                                            "sliding_window_pattern"};
constexpr std::string_view kGemma4Keys[] = {"attention_k_eq_v",
                                            "final_logit_softcapping",
                                            "global_head_dim",
                                            "hidden_activation",
                                            "hidden_size_per_layer_input",
                                            "num_global_key_value_heads",
                                            "num_kv_shared_layers",
                                            "per_layer_config",
                                            "use_double_wide_mlp",
                                            "vocab_size_per_layer_input"};
constexpr std::string_view kGemma2GgufKeys[] = {
    "attention.sliding_window_pattern", "attn_logit_softcapping", "final_logit_softcapping"};
constexpr std::string_view kGemma3GgufKeys[] = {"attention.sliding_window_pattern",
                                                "final_logit_softcapping", "rope.freq_base_swa"};
constexpr std::string_view kGemma4GgufKeys[] = {
    "attention.key_length_swa",         "attention.shared_kv_layers",
    "attention.sliding_window_pattern", "attention.value_length_swa",
    "embedding_length_per_layer_input", "final_logit_softcapping",
    "rope.dimension_count_swa",         "rope.freq_base_swa"};

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
    .norms = kGemmaNorms,
    .qk_norm = QkNorm::kHead};

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
    .gguf_keys = kGemma4GgufKeys,
    .norms = {.before_attention = "input_layernorm",
              .behind_attention = "post_attention_layernorm",
              .before_mlp = "pre_feedforward_layernorm",
              .behind_mlp = "post_feedforward_layernorm",
              .behind_per_layer = "post_per_layer_input_norm"},
    .qk_norm = QkNorm::kHead,
    .norms_values = true,
    .leaves_scores = true,
    .layer_factor = "layer_scalar"};

}  // namespace pagoda
