// TensorNames: the names of a model family's tensors in GGUF files, paired with Hugging Face's
// names. Hugging Face's are the canonical ones.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pagoda {

// The name of a module in both formats: its tensors are "<name>.weight" and "<name>.bias". Or the
// whole name of a family's tensor in a layer, whose ending differs.
struct TensorName {
  std::string_view gguf;
  std::string_view canonical;
};

struct TensorNames {
  std::span<const TensorName> of_model;   // whole names: "token_embd", "model.embed_tokens"
  std::span<const TensorName> of_layer;   // after "blk.N." and "model.layers.N."
  std::span<const TensorName> of_family;  // likewise, looked up before of_layer

  // Returns the canonical name. A name that the lists lack ("rope_freqs.weight") stays as it is.
  std::string canonical_of(std::string_view gguf_name) const;
  // Returns GGUF's name; an empty string if the lists lack the canonical one.
  std::string gguf_of(std::string_view canonical_name) const;
};

}  // namespace pagoda
