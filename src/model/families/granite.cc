// Granite 3 and 4's dense models (IBM, 2024): Llama's layer with four multipliers: of embeddings,
// scores, block outputs, and logits.
#include "model/families/family_pages.h"

namespace pagoda {
namespace {

constexpr std::string_view kGraniteKeys[] = {"attention_multiplier", "embedding_multiplier",
                                             "logits_scaling", "residual_multiplier"};
constexpr std::string_view kGraniteGgufKeys[] = {"attention.scale", "embedding_scale",
                                                 "logit_scale", "residual_scale"};

}  // namespace

const Family kGranite = {
    .model_type = "granite",
    .causal_class = "GraniteForCausalLM",
    .gguf_architecture = "granite",
    .defaults = R"({"vocab_size": 32000, "hidden_size": 4096, "intermediate_size": 11008,
                    "num_hidden_layers": 32, "num_attention_heads": 32,
                    "max_position_embeddings": 2048, "embedding_multiplier": 1.0,
                    "logits_scaling": 1.0, "residual_multiplier": 1.0,
                    "attention_multiplier": 1.0, "eos_token_id": 2, "bos_token_id": 1})",
    .keys = kGraniteKeys,
    .reads_attention_bias = true,
    .reads_mlp_bias = true,
    .gguf_keys = kGraniteGgufKeys,
    .gguf_rope_style = RopeStyle::kAdjacent};

}  // namespace pagoda
