// Token ids to text, one at a time, for streams: what comes out is final and is whole characters.
//
// The pieces of push and finish, joined, are Tokenizer::decode of all the ids. Bytes of a character
// that is not complete are held back, four at most; an id costs the length of its own text,
// whatever came before.
#pragma once

#include <memory>
#include <string>

#include "text/tokenizer.h"

namespace pagoda {

struct DetokenizerOptions {
  bool skip_special_tokens = true;
  // The text goes on where a prompt ended, so that the first token keeps its leading space (as in
  // vLLM: " Paris", where SentencePiece's decoder alone gives "Paris").
  bool continues_text = false;
};

// Not thread-safe: one a stream. It keeps the tokenizer alive.
class Detokenizer {
 public:
  Detokenizer(std::shared_ptr<const Tokenizer> tokenizer, DetokenizerOptions options);
  ~Detokenizer();
  Detokenizer(Detokenizer&&) noexcept;
  Detokenizer& operator=(Detokenizer&&) noexcept;

  // Takes a token, and returns the text that is complete now. An id without a token (a padded
  // vocabulary has such) adds nothing.
  std::string push(int id);
  // Ends the text: U+FFFD for a character that was not completed. Afterwards the next id starts on
  // a whole character again.
  std::string finish();

 private:
  struct Rust;

  std::shared_ptr<const Tokenizer> tokenizer_;
  std::unique_ptr<Rust> rust_;
};

}  // namespace pagoda
