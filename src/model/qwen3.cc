// Qwen3 (Yang et al., 2025, arXiv:2505.09388): no biases; each head's q and k are normed before the
// rotation, which keeps their product bounded.
#include "model/family.h"

namespace pagoda {

const Family kQwen3 = {.model_type = "qwen3",
                       .causal_class = "Qwen3ForCausalLM",
                       .gguf_architecture = "qwen3",
                       .reads_attention_bias = true,
                       .default_head_dim = 128,
                       .windows = WindowRule::kByLayer,
                       .has_qk_norm = true};

}  // namespace pagoda
