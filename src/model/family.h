// Family: all that sets one family of models apart, on one page (llama.cc, qwen2.cc, ...): its
// names, how its checkpoints are read and written, and what its layers have beside what their
// config says.
//
// Dense pre-norm decoders share decoder.cc. families() is the only list of them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "ops/rope/rope_style.h"
#include "weights/name_map.h"

namespace pagoda {

// Which layers config.json's sliding_window is for.
enum class WindowRule : std::uint8_t {
  kNone,       // none: the family has no windows
  kAllLayers,  // all of them, or those that layer_types names
  kByLayer,  // those that layer_types or max_window_layers names, where use_sliding_window says so
};

// GGUF's names of Llama's tensors, which most families share.
extern const TensorNames kLlamaTensorNames;

struct Family {
  // Names.
  std::string_view model_type;         // Hugging Face's, and ModelConfig::architecture
  std::string_view causal_class;       // what config.json's `architectures` may name
  std::string_view gguf_architecture;  // GGUF's general.architecture; families may share one
  const TensorNames* gguf_tensor_names = &kLlamaTensorNames;

  // The meaning of config.json's keys.
  bool has_qkv_bias = false;          // whatever the keys say
  bool reads_attention_bias = false;  // attention_bias: of q, k, v and o
  bool reads_mlp_bias = false;        // mlp_bias
  int default_head_dim = 0;           // 0: hidden_size / num_attention_heads
  WindowRule windows = WindowRule::kNone;

  // How GGUF files store the rows of q and k: kAdjacent where converters permute them.
  RopeStyle gguf_rope_style = RopeStyle::kHalves;

  // Layers.
  bool has_qk_norm = false;  // an RMS norm over each head's q and k, before the rotation
};

extern const Family kLlama;
extern const Family kMistral;
extern const Family kQwen2;
extern const Family kQwen3;

std::span<const Family* const> families();

// Returns, like the next one, null for a name that no page has.
const Family* find_family(std::string_view model_type);
// Finds the family of a GGUF file. has_window: the file has one, which tells families of the same
// architecture apart.
const Family* find_gguf_family(std::string_view architecture, bool has_window);

// Returns the names for messages, each once: "llama, mistral, ...".
std::string supported_model_types();
std::string supported_gguf_architectures();

}  // namespace pagoda
