// Mistral 7B (Jiang et al., 2023, arXiv:2310.06825): Llama's layer with a sliding window, the same
// for all layers (LayerConfig::window), and a head_dim that need not be hidden / heads.
// GGUF calls it llama; a window is what tells them apart.
#include "model/family.h"

namespace pagoda {

const Family kMistral = {.model_type = "mistral",
                         .causal_class = "MistralForCausalLM",
                         .gguf_architecture = "llama",
                         .windows = WindowRule::kAllLayers,
                         .gguf_rope_style = RopeStyle::kAdjacent};

}  // namespace pagoda
