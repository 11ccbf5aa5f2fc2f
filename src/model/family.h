// Family: what sets one model family's decoder apart that a checkpoint's config does not already
// say.
//
// Dense pre-norm decoders share decoder.cc; a family is a page of values (llama.cc, qwen2.cc, ...).
// One whose layers compute something else brings a page with its own layer.
#pragma once

#include <span>
#include <string_view>

namespace pagoda {

struct Family {
  std::string_view model_type;  // Hugging Face's, and ModelConfig::architecture
  bool qk_norm = false;         // an RMS norm over each head's q and k, before the rotation
};

extern const Family kLlama;
extern const Family kMistral;
extern const Family kQwen2;
extern const Family kQwen3;

// Null for a name that no page describes.
const Family* find_family(std::string_view model_type);

}  // namespace pagoda
