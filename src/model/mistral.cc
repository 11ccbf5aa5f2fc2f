// Mistral 7B (Jiang et al., 2023, arXiv:2310.06825): Llama's layer with a sliding window, the same
// for all layers (ModelConfig::layer_windows), and a head_dim that need not be hidden / heads.
#include "model/family.h"

namespace pagoda {

const Family kMistral = {.model_type = "mistral"};

}  // namespace pagoda
