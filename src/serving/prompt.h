// Converts prompts to token ids for the engine, and makes every check that is possible before the
// engine sees them. Errors have the field at fault (Status::field) and, in some cases, a reason for
// programs.
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
  std::string text;  // the given text, or the decoded ids; without a conversation's context
};

// Encodes a prompt. Errors: a prompt that is empty, longer than the context (reason
// context_length_exceeded), or with ids out of range.
Result<EncodedPrompt> encode_prompt(const ServedModel& model, const PromptInput& prompt,
                                    bool add_special_tokens);
// Renders and encodes a conversation, behind the tokens of its context. Errors: encode_prompt()'s and
// render_chat()'s; those of the context have the field context. If the tokens are only counted, the
// limits are those of tokenize_text() instead of the context's.
Result<EncodedPrompt> encode_chat_prompt(const ServedModel& model, ChatPrompt prompt);
// Returns the conversation's text, rendered by the model's template, with the name of each tool in
// it. Errors: a checkpoint without a chat template, and a template that refuses the messages or
// leaves out tools.
Result<std::string> render_chat(const ServedModel& model, ChatPrompt prompt);

// Returns a text's tokens. The engine's limits do not apply: the text may be empty or too long for
// it. Errors: a text longer than kMaxTokenizedBytes, or with a piece longer than
// kMaxTokenizedPiece.
Result<std::vector<int>> tokenize_text(const ServedModel& model, std::string_view text,
                                       bool add_special_tokens, std::string_view field);

// Returns the most tokens that an answer may have: `asked`, but no more than the context leaves
// behind the prompt.
int resolve_max_tokens(const ServedModel& model, int num_prompt_tokens, std::optional<int> asked);

// Returns the length of the longest prompt that leaves room for one token of an answer.
int most_prompt_tokens(const EngineLimits& limits);
// Returns a text's tokens. An error names `field`.
Result<std::vector<int>> encode_field(const Tokenizer& tokenizer, std::string_view text,
                                      EncodeOptions options, std::string_view field);
// Returns a text's tokens. A text with far more than `most` tokens is refused after reading only
// its beginning.
Result<std::vector<int>> token_ids_if_near(const ServedModel& model, std::string_view text,
                                           int most, EncodeOptions options, std::string_view field);
// Refuses token ids if there are none, more than `most`, or some out of range.
Status check_token_ids(const EngineLimits& limits, const std::vector<int>& ids, int most,
                       std::string_view field);
// Returns the error for a prompt that is longer than `max_model_len`. `num_tokens`: the prompt's
// number of tokens as text, such as "at least 100".
Status too_long_prompt(int max_model_len, std::string_view field, std::string_view num_tokens);

}  // namespace pagoda
