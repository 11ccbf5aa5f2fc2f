// Whether a text has far more tokens than there may be, found on its beginning: it is refused for
// what the limit costs, not for what the text does.
#pragma once

#include <string_view>

#include "core/status.h"
#include "text/tokenizer.h"

namespace pagoda {

// Returns true where Tokenizer::encode() gives more than `max_tokens` tokens for the text. False
// where its length or its beginning doesn't tell: then the text may fit or not.
//
// It tokenises pieces, cut where a word begins, until they have enough tokens: about `max_tokens`,
// whatever the text's length, of ordinary text. A cut may add tokens: it may go through a special
// token's spelling, or a piece may get the space that a tokenizer puts before a text. Each piece
// counts for less by more than that. Errors are encode()'s.
Result<bool> surely_exceeds(const Tokenizer& tokenizer, std::string_view utf8, int max_tokens);

}  // namespace pagoda
