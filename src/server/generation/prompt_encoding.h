// From a request's prompt to token ids that the engine takes, with every check that can be made
// before it sees them.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "server/base/api_error.h"
#include "server/fields/chat_prompt.h"
#include "server/fields/prompt_input.h"
#include "serving/served_model.h"

namespace pagoda {

struct EncodedPrompt {
  std::vector<int> token_ids;
  std::string text;  // given, or the ids' own
};

// Errors: a prompt that is empty, longer than the context (code context_length_exceeded), or with
// ids out of range.
ApiResult<EncodedPrompt> encode_prompt(const ServedModel& model, const PromptInput& prompt,
                                       bool add_special_tokens);
// Marks of tokens in a text are text, and none is put around it.
inline constexpr EncodeOptions kAsText = {.add_special_tokens = false, .parse_special = false};
// Returns what the tokenizer puts before a text of its own accord: one token, or none.
ApiResult<std::vector<int>> tokens_before_text(const ServedModel& model);
// Refuses a model that knows of no gaps between two texts, in the name of `param`.
std::optional<ApiError> check_fill_in(const ServedModel& model, std::string_view param);
// Makes the prompt of an answer that belongs between two texts. Marks of tokens in them are text.
// Errors: encode_prompt()'s, and a model that knows of no gaps (param suffix).
ApiResult<EncodedPrompt> encode_fill_in(const ServedModel& model, std::string_view prefix,
                                        std::string_view suffix, bool add_special_tokens);
// Errors besides: a checkpoint without a chat template, a template that refuses the messages. A
// conversation that is for counting has tokenize_text()'s in place of the context's.
ApiResult<EncodedPrompt> encode_chat_prompt(const ServedModel& model, const ChatPrompt& prompt);

// Returns a text's tokens without the engine's limits: an empty or over-long one has its own too.
// Errors: a text beyond kMaxTokenizedBytes, or with a piece beyond kMaxTokenizedPiece
// (tokenize_request.h).
ApiResult<std::vector<int>> tokenize_text(const ServedModel& model, std::string_view text,
                                          bool add_special_tokens, std::string_view param);
ApiResult<std::string> render_chat(const ServedModel& model, const ChatPrompt& prompt);

// How inputs that are embedded become token ids.
struct InputEncoding {
  bool add_special_tokens = true;
  std::string_view prompt = {};  // put before each text, not before token ids
  // The most tokens of each, from 1 to most_embedded(); absent: longer ones than that are an error.
  // Tokens that the tokenizer puts around a text are not cut.
  std::optional<int> cut_to;
  bool keeps_end = true;  // the last tokens; otherwise the first
};

// Returns the most tokens of an input that the model embeds: the context's length, or the length
// that its EmbeddingFormat has, whichever is less.
int most_embedded(const ServedModel& model);

// Returns the text that the model's EmbeddingFormat puts before each, by its name (absent: the
// default). An error names prompt_name.
ApiResult<std::string_view> find_prompt(const ServedModel& model,
                                        const std::optional<std::string>& name);

// Returns the token ids of each. Errors name `param`: an input that is empty, longer than the
// context (code context_length_exceeded), or with ids out of range; a text where the model has no
// tokenizer; where texts are cut, tokenize_text()'s besides.
ApiResult<std::vector<std::vector<int>>> encode_inputs(const ServedModel& model,
                                                       const std::vector<PromptInput>& inputs,
                                                       const InputEncoding& encoding,
                                                       std::string_view param);

// Returns the most tokens that truncate_prompt_tokens leaves of an input; absent: it was not asked
// for. An error where that is more than the context has.
ApiResult<std::optional<int>> settle_cut(const ServedModel& model, std::optional<int> asked);

struct TextPair {
  std::string_view query, document;
};
// Returns the token ids as which a model with a ScoreFormat reads a pair. With `most`, the document
// loses its last tokens until the pair has no more than those. Errors name `param`: encode_inputs()'s,
// and a cut where the model has a prompt of its own for pairs. REQUIRES: it has a ScoreFormat.
ApiResult<std::vector<int>> encode_pair(const ServedModel& model, const TextPair& pair,
                                        std::optional<int> most, std::string_view param);

// Returns what was `asked` for, or `fallback` (absent: the rest of the context), clamped; an
// explicit wish beyond the context is an error.
ApiResult<int> settle_max_tokens(const ServedModel& model, int num_prompt_tokens,
                                 std::optional<int> asked, std::optional<int> fallback);

}  // namespace pagoda
