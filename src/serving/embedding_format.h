// How a checkpoint makes one vector of a text: what sentence-transformers' files in a folder say of
// it (serving/sentence_transformers_format.h), or a GGUF file's pooling_type key.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/status.h"
#include "engine/request.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The defaults are of a checkpoint that says nothing of it: those of vLLM.
struct EmbeddingFormat {
  Pooling pooling = Pooling::kLast;
  bool normalizes = true;  // to a length of 1
  // Texts that a request may ask by name to have put before its own.
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // of requests that name none
  // Longer inputs lose their last tokens, but for those that the tokenizer puts around a text.
  std::optional<int> max_tokens;
  // The first numbers that stay of each vector, which keep their values; absent: all.
  std::optional<int> dimensions;
};

// Returns nothing where the checkpoint says nothing of it.
//
// Errors: kUnsupported for a way that nothing here computes (another pooling or module, a key that
// is not known); kDataLoss or kInvalidArgument for a file that is no JSON, or of another form. Each
// names the file.
Result<std::optional<EmbeddingFormat>> read_embedding_format(const Checkpoint& checkpoint);

// Returns what GGUF's pooling_type says it by. Whether it normalizes has no key there.
std::uint32_t gguf_pooling_type(Pooling pooling);

}  // namespace pagoda
