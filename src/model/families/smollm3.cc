// SmolLM3 (Hugging Face, 2025): Llama's layer, but every fourth one is not rotated (Yang et al.,
// "Rope to Nope and Back Again", 2025, arXiv:2501.18795). GGUF files do not say so: their reader
// has a constant for it.
#include "model/families/family_pages.h"

namespace pagoda {
namespace {

constexpr std::string_view kSmolLm3Keys[] = {"no_rope_layer_interval", "no_rope_layers"};

}  // namespace

const Family kSmolLm3 = {
    .model_type = "smollm3",
    .causal_class = "SmolLM3ForCausalLM",
    .gguf_architecture = "smollm3",
    .defaults = R"({"vocab_size": 128256, "hidden_size": 2048, "intermediate_size": 11008,
                    "num_hidden_layers": 36, "num_attention_heads": 16, "num_key_value_heads": 4,
                    "max_position_embeddings": 32768, "rope_theta": 2000000,
                    "no_rope_layer_interval": 4, "sliding_window": null,
                    "tie_word_embeddings": true, "eos_token_id": 128001, "bos_token_id": 128000})",
    .keys = kSmolLm3Keys,
    .reads_attention_bias = true,
    .reads_mlp_bias = true,
    .windows = WindowRule::kUnrotated,
    .gguf_rope_style = RopeStyle::kAdjacent};

}  // namespace pagoda
