// Decides from the beginning of a text whether it has far more tokens than the limit. So a refusal
// costs time proportional to the limit, not to the text.
#pragma once

#include <string_view>

#include "core/status.h"
#include "text/tokenizer.h"

namespace pagoda {

// Returns true if Tokenizer::encode() is certain to give more than `max_tokens` tokens for the
// text. False if the text may fit, or if its length and beginning do not tell.
//
// It tokenises pieces, cut before words, until they have enough tokens. For ordinary text these are
// about `max_tokens` tokens, whatever the text's length. A cut may add tokens: it may split a
// special token, or the tokenizer may put a space before a piece. So the count of each piece is
// reduced by more than a cut can add. Errors are encode()'s.
Result<bool> surely_exceeds(const Tokenizer& tokenizer, std::string_view utf8, int max_tokens);

}  // namespace pagoda
