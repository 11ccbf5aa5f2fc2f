// The kinds of a GGUF file's tokens: those that end a text, and those that are control tokens
// whatever the file says, because converters have often marked them as plain text. Both go by
// spelling, as llama.cpp has it.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "weights/gguf.h"

namespace pagoda {

struct GgufTokens {
  // [tokens] tokenizer.ggml.token_type, with what spelling overrides; empty where the file has no
  // tokens. The numbers are the format's: 1 plain, 3 control, 4 defined by a user.
  std::vector<int> types;
  std::vector<int> end_ids;  // each once: the keys' first, then those known by spelling
};

// Reads the file's tokens. The file's own ids that lie beyond its vocabulary of `vocab_size` are
// left out, with a warning. kDataLoss: keys that contradict each other or are of another type.
Result<GgufTokens> read_gguf_tokens(const GgufFile& file, int vocab_size);

// Reads an id under `key`; nothing where the key is absent or, with a warning, beyond the
// vocabulary.
Result<std::optional<int>> read_gguf_token_id(const GgufFile& file, std::string_view key,
                                              int vocab_size);

}  // namespace pagoda
