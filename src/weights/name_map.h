// TensorNames: the names that GGUF files give the tensors of a family of models, beside Hugging
// Face's, which are canonical.
#pragma once

#include <span>
#include <string>
#include <string_view>

namespace pagoda {

// The name of a module on both sides: its tensors are "<name>.weight" and "<name>.bias".
struct TensorName {
  std::string_view gguf;
  std::string_view canonical;
};

struct TensorNames {
  std::span<const TensorName> of_model;   // whole names: "token_embd", "model.embed_tokens"
  std::span<const TensorName> of_layer;   // behind "blk.N." and "model.layers.N."
  std::span<const TensorName> of_family;  // likewise, looked up first

  // Returns a name that the lists lack ("rope_freqs.weight") as it is.
  std::string canonical_of(std::string_view gguf_name) const;
  // Returns an empty string for a name that the lists lack.
  std::string gguf_of(std::string_view canonical_name) const;
};

}  // namespace pagoda
