// Text of single tokens, for code that follows an answer token by token.
#pragma once

#include <string>

#include "text/tokenizer.h"

namespace pagoda {

// Returns a token's text, which may be a part of a character. A special token may be a mark; its
// bytes are empty, so its name is used.
inline std::string shown_text_of(const Tokenizer& tokenizer, int token_id) {
  const Result<std::string> text = tokenizer.is_special(token_id) ? tokenizer.id_to_token(token_id)
                                                                  : tokenizer.token_bytes(token_id);
  return text.ok() ? *text : std::string();
}

}  // namespace pagoda
