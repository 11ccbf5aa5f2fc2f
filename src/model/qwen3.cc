// Qwen3 (Yang et al., 2025, arXiv:2505.09388): no biases; each head's q and k are normed before the
// rotation, which keeps their product bounded.
#include "model/family.h"

namespace pagoda {

const Family kQwen3 = {.model_type = "qwen3", .qk_norm = true};

}  // namespace pagoda
