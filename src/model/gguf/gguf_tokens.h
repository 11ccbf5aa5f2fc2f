// The kinds of a GGUF file's tokens: those that end a text, and control tokens. Converters have
// often marked control tokens as plain text. So both kinds are also recognised by spelling, as in
// llama.cpp.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "weights/gguf.h"

namespace pagoda {

struct GgufTokens {
  // [tokens] tokenizer.ggml.token_type, with some types overridden by spelling; empty if the file
  // has no tokens. The numbers are the format's: 1 plain, 3 control, 4 defined by a user.
  std::vector<int> types;
  std::vector<int> end_ids;  // each once: the keys' first, then those known by spelling
};

// Reads the file's tokens. Ids under the file's keys that are not below `vocab_size` are ignored,
// with a warning. kDataLoss: keys that contradict each other or are of another type.
Result<GgufTokens> read_gguf_tokens(const GgufFile& file, int vocab_size);

// Reads an id under `key`. Returns nothing if the key is absent or, with a warning, if the id is
// beyond the vocabulary.
Result<std::optional<int>> read_gguf_token_id(const GgufFile& file, std::string_view key,
                                              int vocab_size);

}  // namespace pagoda
