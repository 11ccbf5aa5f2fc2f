// Phi-3, Phi-3.5, Phi-4 and Phi-4-mini (Abdin et al., 2024, arXiv:2404.14219): Llama's layer with
// q, k and v joined, and gate and up too. The long-context models have LongRoPE (Ding et al., 2024,
// arXiv:2402.13753). Phi-4-mini rotates a part of a head. If the config has a window, all layers
// have it.
#include "model/families/family_pages.h"

namespace pagoda {
namespace {

constexpr TensorName kPhi3OwnNames[] = {
    {"attn_norm", "input_layernorm"},
    {"ffn_norm", "post_attention_layernorm"},
    {"ffn_up", "mlp.gate_up_proj"},
};

constexpr TensorNames kPhi3TensorNames = {
    .of_model = kModelTensorNames, .of_layer = kLayerTensorNames, .of_family = kPhi3OwnNames};

constexpr std::string_view kPhi3Keys[] = {"partial_rotary_factor"};
constexpr std::string_view kPhi3GgufKeys[] = {"rope.dimension_count", "rope.scaling.attn_factor",
                                              "rope.scaling.original_context_length"};

}  // namespace

const Family kPhi3 = {
    .model_type = "phi3",
    .causal_class = "Phi3ForCausalLM",
    .gguf_architecture = "phi3",
    .own_code = "modeling_phi3.Phi3ForCausalLM",
    .gguf_tensor_names = &kPhi3TensorNames,
    .defaults = R"({"vocab_size": 32064, "hidden_size": 3072, "intermediate_size": 8192,
                    "num_hidden_layers": 32, "num_attention_heads": 32,
                    "max_position_embeddings": 4096, "original_max_position_embeddings": 4096,
                    "rms_norm_eps": 1e-5, "sliding_window": null, "eos_token_id": 32000,
                    "bos_token_id": 1})",
    .keys = kPhi3Keys,
    .windows = WindowRule::kAllLayers,
    .calls_longrope_yarn = true,
    .gguf_keys = kPhi3GgufKeys};

}  // namespace pagoda
