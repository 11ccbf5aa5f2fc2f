// Tensor names of GGUF files as Hugging Face has them. The architectures llama, qwen2 and qwen3
// (and Mistral's models, which GGUF calls llama too) share them:
//
//   token_embd.weight             model.embed_tokens.weight
//   output_norm.weight            model.norm.weight
//   output.weight                 lm_head.weight
//   blk.N.attn_norm.weight        model.layers.N.input_layernorm.weight
//   blk.N.attn_q.{weight,bias}    model.layers.N.self_attn.q_proj.{weight,bias}
//                                 likewise k, v; output: o_proj
//   blk.N.attn_q_norm.weight      model.layers.N.self_attn.q_norm.weight; likewise k
//   blk.N.ffn_norm.weight         model.layers.N.post_attention_layernorm.weight
//   blk.N.ffn_gate.{weight,bias}  model.layers.N.mlp.gate_proj.{weight,bias}; likewise up, down
#pragma once

#include <string>
#include <string_view>

namespace pagoda {

// A name that the table lacks ("rope_freqs.weight") stays as it is.
std::string canonical_tensor_name(std::string_view gguf_name);

// The other way round; empty for a name that the table lacks.
std::string gguf_tensor_name(std::string_view canonical_name);

}  // namespace pagoda
