// Mistral 7B (Jiang et al., 2023, arXiv:2310.06825): Llama's layer with a sliding window, the same
// for all layers (LayerConfig::window), and a head_dim that need not be hidden / heads. GGUF calls
// both Mistral and Llama "llama": a file with a window is a Mistral.
//
// Ministral 3 (Mistral AI, 2025) stretches the rotation by YaRN (Peng et al., 2023,
// arXiv:2309.00071). It multiplies queries by a factor that grows with their position. GGUF calls
// it mistral3, and uses this name for Mistral Small 3 too, which has neither.
#include "model/families/family_pages.h"

namespace pagoda {
namespace {

constexpr std::string_view kMinistral3Keys[] = {"llama_4_scaling_beta"};
constexpr std::string_view kMinistral3GgufKeys[] = {
    "attention.temperature_scale",  "rope.scaling.original_context_length",
    "rope.scaling.yarn_beta_fast",  "rope.scaling.yarn_beta_slow",
    "rope.scaling.yarn_ext_factor", "rope.scaling.yarn_log_multiplier"};

}  // namespace

const Family kMistral = {
    .model_type = "mistral",
    .causal_class = "MistralForCausalLM",
    .gguf_architecture = "llama",
    .defaults = R"({"sliding_window": 4096, "eos_token_id": 2, "bos_token_id": 1})",
    .windows = WindowRule::kAllLayers,
    .gguf_rope_style = RopeStyle::kAdjacent};

const Family kMinistral3 = {
    .model_type = "ministral3",
    .causal_class = "Ministral3ForCausalLM",
    .gguf_architecture = "mistral3",
    .defaults = R"({"vocab_size": 131072, "hidden_size": 4096, "intermediate_size": 14336,
                    "num_hidden_layers": 34, "num_attention_heads": 32, "num_key_value_heads": 8,
                    "head_dim": 128, "max_position_embeddings": 262144, "rms_norm_eps": 1e-5,
                    "sliding_window": null, "eos_token_id": 2, "bos_token_id": 1,
                    "rope_parameters": {"rope_type": "yarn", "rope_theta": 1000000.0,
                      "factor": 16.0, "original_max_position_embeddings": 16384,
                      "beta_fast": 32.0, "beta_slow": 1.0, "mscale": 1.0, "mscale_all_dim": 1.0,
                      "llama_4_scaling_beta": 0.1}})",
    .keys = kMinistral3Keys,
    .windows = WindowRule::kAllLayers,
    .gguf_keys = kMinistral3GgufKeys,
    .gguf_rope_style = RopeStyle::kAdjacent};

}  // namespace pagoda
