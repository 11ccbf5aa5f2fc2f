// GLM-4 of 2025 (0414; GLM Team, 2024, arXiv:2406.12793): norms before and after each block, biases
// on q, k and v, gate and up joined, and half of a head rotated, in adjacent pairs.
#include "model/families/family_pages.h"

namespace pagoda {
namespace {

constexpr TensorName kGlm4OwnNames[] = {
    {"attn_norm", "input_layernorm"},         {"post_attention_norm", "post_self_attn_layernorm"},
    {"ffn_norm", "post_attention_layernorm"}, {"ffn_up", "mlp.gate_up_proj"},
    {"post_ffw_norm", "post_mlp_layernorm"},
};

constexpr TensorNames kGlm4TensorNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kGlm4OwnNames};

constexpr std::string_view kGlm4Keys[] = {"partial_rotary_factor"};
constexpr std::string_view kGlm4GgufKeys[] = {"rope.dimension_count"};

// Drops the output projection's bias: GLM-4's attention_bias is about q, k and v alone.
Status drop_output_bias(const JsonFields&, ModelConfig& config) {
  config.attention_output_bias = false;
  return ok_status();
}

}  // namespace

const Family kGlm4 = {
    .model_type = "glm4",
    .causal_class = "Glm4ForCausalLM",
    .gguf_architecture = "glm4",
    .gguf_tensor_names = &kGlm4TensorNames,
    .defaults = R"({"vocab_size": 151552, "hidden_size": 4096, "intermediate_size": 13696,
                    "num_hidden_layers": 40, "num_attention_heads": 32, "num_key_value_heads": 2,
                    "head_dim": 128, "max_position_embeddings": 131072,
                    "rms_norm_eps": 1.5625e-7, "partial_rotary_factor": 0.5,
                    "attention_bias": true, "eos_token_id": [151329, 151336, 151338]})",
    .keys = kGlm4Keys,
    .reads_attention_bias = true,
    .rope_style = RopeStyle::kAdjacent,
    .finish_hf_config = drop_output_bias,
    .gguf_keys = kGlm4GgufKeys,
    .gguf_rope_style = RopeStyle::kAdjacent,
    .norms = {.before_attention = "input_layernorm",
              .behind_attention = "post_self_attn_layernorm",
              .before_mlp = "post_attention_layernorm",
              .behind_mlp = "post_mlp_layernorm"}};

}  // namespace pagoda
