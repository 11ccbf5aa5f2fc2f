// Converts token ids to text, one at a time, for streams. Returned text is final and consists of
// whole characters.
//
// The results of push and finish, joined, equal Tokenizer::decode of all the ids. At most four
// bytes of an incomplete character are held back. The cost of an id depends on its own text alone,
// not on the text before it.
#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace pagoda {

struct DetokenizerOptions {
  bool skip_special_tokens = true;
  // The text continues a prompt, so that the first token keeps its leading space. As in vLLM the
  // result is " Paris", although SentencePiece's decoder alone gives "Paris".
  bool continues_text = false;
};

// Not thread-safe: each stream needs its own. It keeps the tokenizer alive.
class Detokenizer {
 public:
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, DetokenizerOptions options);
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;

  // Takes a token, and returns the text that is complete so far. An id without a token, as in a
  // padded vocabulary, adds nothing.
  std::string push(int id);
  // Ends the text, with U+FFFD for an incomplete character. A later id starts a new character.
  std::string finish();

 private:
  struct Rust;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Rust> rust_;
};

}  // namespace pagoda
