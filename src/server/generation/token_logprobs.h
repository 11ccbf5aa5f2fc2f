// Log-probabilities in OpenAI's shapes, and prompt log-probabilities in vLLM's.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/engine.h"
#include "text/tokenizer.h"

namespace pagoda {

// How tokens are written: by their bytes, or as "token_id:N".
struct TokenNaming {
  const Tokenizer& tokenizer;
  bool as_token_ids = false;

  // Returns the token's name as UTF-8. Bytes that are not UTF-8 are escaped as OpenAI does it:
  // "bytes:\xe2\x82" in completions, "\xe2\x82" in chat.
  std::string name(int token_id, std::string_view escape_prefix) const;
};

// The {tokens, token_logprobs, top_logprobs, text_offset} of completions, built token by token.
class CompletionLogprobs {
 public:
  explicit CompletionLogprobs(TokenNaming naming) : naming_(naming) {}

  // Appends a token. The first prompt token has no log-probability.
  void append(int token_id, const std::optional<TokenLogprobs>& logprobs);
  // Returns what was appended since the last call. Text offsets count from the answer's beginning.
  nlohmann::json take();

 private:
  TokenNaming naming_;
  std::vector<std::string> tokens_;
  std::vector<std::optional<TokenLogprobs>> logprobs_;
  std::vector<int> text_offsets_;
  int text_length_ = 0;  // in characters
};

// Returns the entries of chat's {"content": [...]}: {token, logprob, bytes, top_logprobs}.
nlohmann::json chat_logprobs_content(const TokenNaming& naming,
                                     const std::vector<TokenLogprobs>& logprobs);

// Returns [null, {"token_id": {logprob, rank, decoded_token}}, ...], one per prompt token.
nlohmann::json prompt_logprobs_json(const TokenNaming& naming,
                                    const std::vector<std::optional<TokenLogprobs>>& logprobs);

}  // namespace pagoda
