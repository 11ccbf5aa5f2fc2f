// Llama 1 to 3 (Touvron et al., 2023, arXiv:2302.13971), and the many checkpoints of its shape:
// SmolLM2, TinyLlama, Yi, DeepSeek-LLM. For longer contexts, Llama 3 scales the slow pairs of its
// rotation; RopeTable::inv_freq has this scaling applied.
//
// Pre-norm layers, grouped-query attention, SwiGLU; no biases unless the config says so.
#include "model/families/family_pages.h"

namespace pagoda {
namespace {

constexpr TensorName kLlamaOwnNames[] = {
    {"attn_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
};

}  // namespace

const TensorNames kLlamaTensorNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kLlamaOwnNames};

const Family kLlama = {.model_type = "llama",
                       .causal_class = "LlamaForCausalLM",
                       .gguf_architecture = "llama",
                       .reads_attention_bias = true,
                       .reads_mlp_bias = true,
                       .gguf_rope_style = RopeStyle::kAdjacent};

}  // namespace pagoda
