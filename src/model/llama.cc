// Llama 1 to 3 (Touvron et al., 2023, arXiv:2302.13971; Llama 3's longer contexts scale the
// rotation's slow pairs, which ModelConfig::rope_inv_freq has applied), and the many checkpoints of
// its shape: SmolLM2, TinyLlama, Yi, DeepSeek-LLM.
//
// Pre-norm layers, grouped-query attention, SwiGLU; no biases unless the config says so.
#include "model/family.h"

namespace pagoda {

const Family kLlama = {.model_type = "llama"};

}  // namespace pagoda
