// Qwen3 (Yang et al., 2025, arXiv:2505.09388): no biases; each head's q and k are normed before the
// rotation, which keeps their product bounded. Qwen3-VL's text tower computes the same. Its
// rotation has sections for an image's rows and columns, but in text all sections have the same
// position.
#include "model/families/family_pages.h"

namespace pagoda {
namespace {

constexpr std::string_view kQwen3VlKeys[] = {"mrope_interleaved", "mrope_section"};
constexpr std::string_view kQwen3VlGgufKeys[] = {"rope.dimension_sections", "n_deepstack_layers"};

}  // namespace

const Family kQwen3 = {
    .model_type = "qwen3",
    .causal_class = "Qwen3ForCausalLM",
    .gguf_architecture = "qwen3",
    .defaults = R"({"head_dim": 128, "sliding_window": 4096, "max_window_layers": 28})",
    .reads_attention_bias = true,
    .windows = WindowRule::kByLayer,
    .qk_norm = QkNorm::kHead};

const Family kQwen3Vl = {
    .model_type = "qwen3_vl_text",
    .causal_class = "Qwen3VLForConditionalGeneration",
    .base_class = "Qwen3VLTextModel",
    .gguf_architecture = "qwen3vl",
    .defaults = R"({"vocab_size": 151936, "hidden_size": 4096, "intermediate_size": 22016,
                    "num_hidden_layers": 32, "num_attention_heads": 32, "num_key_value_heads": 32,
                    "head_dim": 128, "max_position_embeddings": 128000, "rope_theta": 500000})",
    .keys = kQwen3VlKeys,
    .reads_attention_bias = true,
    .gguf_keys = kQwen3VlGgufKeys,
    .qk_norm = QkNorm::kHead};

}  // namespace pagoda
