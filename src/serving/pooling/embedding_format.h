// How a checkpoint reduces a text to one vector, according to sentence-transformers' files in a
// folder (serving/pooling/sentence_transformers_format.h) or a GGUF file's key pooling_type.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>

#include "core/status.h"
#include "engine/request.h"
#include "weights/checkpoint.h"

namespace pagoda {

// The defaults apply to checkpoints without these settings. They are vLLM's.
struct EmbeddingFormat {
  Pooling pooling = Pooling::kLast;
  bool normalizes = true;  // vectors are scaled to length 1
  // Texts that are put before an input if a request asks for them by name.
  std::map<std::string, std::string> prompts;
  std::string default_prompt;  // for requests that name no prompt
  // Longer inputs are cut at their end; the tokens that the tokenizer adds around a text stay.
  std::optional<int> max_tokens;
  // The number of leading entries of each vector that are kept, unscaled; absent: all.
  std::optional<int> dimensions;
};

// Returns nothing if the checkpoint has no such settings.
//
// Errors: kUnsupported for another pooling or module, or an unknown key; kDataLoss or
// kInvalidArgument for a file that is not JSON or has another structure. Each error names the file.
Result<std::optional<EmbeddingFormat>> read_embedding_format(const Checkpoint& checkpoint);

// Returns the value of GGUF's pooling_type. GGUF has no key for normalization.
std::uint32_t gguf_pooling_type(Pooling pooling);

}  // namespace pagoda
