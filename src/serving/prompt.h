// From a prompt to token ids that the engine takes, with every check that can be made before it sees
// them. Errors name the field at fault (Status::field), and the word for programs where there is one.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "serving/prompt_input.h"
#include "serving/served_model.h"

namespace pagoda {

struct EncodedPrompt {
  std::vector<int> token_ids;
  std::string text;  // given, or the ids' own
};

// Encodes a prompt. Errors: a prompt that is empty, longer than the context (reason
// context_length_exceeded), or with ids out of range.
Result<EncodedPrompt> encode_prompt(const ServedModel& model, const PromptInput& prompt,
                                    bool add_special_tokens);
// Renders and encodes a conversation. Errors besides: a checkpoint without a chat template, a
// template that refuses the messages. A conversation that is for counting has tokenize_text()'s in
// place of the context's.
Result<EncodedPrompt> encode_chat_prompt(const ServedModel& model, const ChatPrompt& prompt);
// Returns the conversation's text, as the model's template writes it.
Result<std::string> render_chat(const ServedModel& model, const ChatPrompt& prompt);

// Returns a text's tokens without the engine's limits: an empty or over-long one has its own too.
// Errors: a text beyond kMaxTokenizedBytes, or with a piece beyond kMaxTokenizedPiece.
Result<std::vector<int>> tokenize_text(const ServedModel& model, std::string_view text,
                                       bool add_special_tokens, std::string_view field);

// Returns what was `asked` for, or `fallback` (absent: the rest of the context), clamped; an
// explicit wish beyond the context is an error.
Result<int> resolve_max_tokens(const ServedModel& model, int num_prompt_tokens,
                               std::optional<int> asked, std::optional<int> fallback);

// Returns the length of the longest prompt that leaves room for one token of an answer.
int most_prompt_tokens(const EngineLimits& limits);
// Returns a text's tokens; an error names `field`.
Result<std::vector<int>> encode_field(const Tokenizer& tokenizer, std::string_view text,
                                      EncodeOptions options, std::string_view field);
// Returns a text's tokens; refuses a text with far more of them than `most` by its beginning.
Result<std::vector<int>> token_ids_if_near(const ServedModel& model, std::string_view text,
                                           int most, EncodeOptions options, std::string_view field);
// Refuses token ids that are none, more than `most`, or out of range.
Status check_token_ids(const EngineLimits& limits, const std::vector<int>& ids, int most,
                       std::string_view field);
// Returns the error of a prompt that is longer than `max_model_len`; `num_tokens` in words.
Status too_long_prompt(int max_model_len, std::string_view field, std::string_view num_tokens);

}  // namespace pagoda
