// Qwen2 and Qwen2.5 (Yang et al., 2024, arXiv:2407.10671): Llama's layer with biases on q, k and v.
// The heads of small models are tied to the embedding, as the config says. Only the layers that the
// config names have windows.
#include "model/families/family_pages.h"

namespace pagoda {
namespace {

Status add_biases(const JsonFields&, ModelConfig& config) {
  config.attention_bias = true;
  return ok_status();
}

}  // namespace

const Family kQwen2 = {.model_type = "qwen2",
                       .causal_class = "Qwen2ForCausalLM",
                       .gguf_architecture = "qwen2",
                       .defaults = R"({"sliding_window": 4096, "max_window_layers": 28})",
                       .windows = WindowRule::kByLayer,
                       .finish_hf_config = add_biases};

}  // namespace pagoda
