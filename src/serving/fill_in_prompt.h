// From the texts around a gap to token ids that the engine takes. One function refuses texts that
// are longer than the context, the other cuts them. Special tokens in the texts are plain text.
// Errors name the field at fault (Status::field).
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "serving/prompt.h"
#include "serving/served_model.h"

namespace pagoda {

// Makes the prompt of an answer that belongs between two texts. Errors: encode_prompt()'s, and a
// model that has no tokens for a gap (field suffix, reason no_fill_in).
Result<EncodedPrompt> encode_fill_in(const ServedModel& model, std::string_view prefix,
                                     std::string_view suffix, bool add_special_tokens);

struct CutPrompt {
  std::vector<int> token_ids;
  bool is_cut = false;  // some of the texts were cut or left out
};

// Makes the prompt of an answer at a cursor. The prompt leaves room for `max_tokens` of an answer
// (absent: a quarter of the context), and for half of the context at most. The suffix gets up to a
// quarter of that room, and the prefix the rest. Files get what these two leave, the last file
// first. Errors: the tokenizer's, and a model that has no tokens for a gap (reason no_fill_in).
// Fields in errors: input_prefix, input_suffix and input_extra, which are the files.
Result<CutPrompt> encode_at_cursor(const ServedModel& model, const CursorTexts& texts,
                                   std::optional<int> max_tokens);

}  // namespace pagoda
