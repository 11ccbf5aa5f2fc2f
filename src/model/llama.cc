// Llama 1 to 3 (Touvron et al., 2023, arXiv:2302.13971; Llama 3's longer contexts scale the
// rotation's slow pairs, which RopeTable::inv_freq has applied), and the many checkpoints of
// its shape: SmolLM2, TinyLlama, Yi, DeepSeek-LLM.
//
// Pre-norm layers, grouped-query attention, SwiGLU; no biases unless the config says so.
#include "model/family.h"

namespace pagoda {
namespace {

constexpr TensorName kLlamaOfLayer[] = {
    {"attn_norm", "input_layernorm"},
    {"attn_q", "self_attn.q_proj"},
    {"attn_k", "self_attn.k_proj"},
    {"attn_v", "self_attn.v_proj"},
    {"attn_qkv", "self_attn.qkv_proj"},
    {"attn_output", "self_attn.o_proj"},
    {"attn_q_norm", "self_attn.q_norm"},
    {"attn_k_norm", "self_attn.k_norm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_gate", "mlp.gate_proj"},
    {"ffn_up", "mlp.up_proj"},
    {"ffn_down", "mlp.down_proj"},
};

}  // namespace

const TensorNames kLlamaTensorNames = {.of_model = kModelTensorNames, .of_layer = kLlamaOfLayer};

const Family kLlama = {.model_type = "llama",
                       .causal_class = "LlamaForCausalLM",
                       .gguf_architecture = "llama",
                       .reads_attention_bias = true,
                       .reads_mlp_bias = true,
                       .gguf_rope_style = RopeStyle::kAdjacent};

}  // namespace pagoda
