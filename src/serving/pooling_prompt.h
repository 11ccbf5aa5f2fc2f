// From what is embedded or scored to token ids that the engine takes. Errors are as in
// serving/prompt.h.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "serving/prompt_input.h"
#include "serving/served_model.h"

namespace pagoda {

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
Result<std::string_view> find_prompt(const ServedModel& model,
                                     const std::optional<std::string>& name);

// Returns the token ids of each. Errors name `field`: an input that is empty, longer than the
// context (reason context_length_exceeded), or with ids out of range; a text where the model has no
// tokenizer; where texts are cut, tokenize_text()'s besides.
Result<std::vector<std::vector<int>>> encode_inputs(const ServedModel& model,
                                                    const std::vector<PromptInput>& inputs,
                                                    const InputEncoding& encoding,
                                                    std::string_view field);

// Returns the most tokens that truncate_prompt_tokens leaves of an input; absent: it was not asked
// for. An error where that is more than the context has.
Result<std::optional<int>> resolve_cut(const ServedModel& model, std::optional<int> asked);

struct TextPair {
  std::string_view query, document;
};
// Returns the token ids as which a model with a ScoreFormat reads a pair. With `most`, the document
// loses its last tokens until the pair has no more than those. Errors name `field`: encode_inputs()'s,
// and a cut where the model has a prompt of its own for pairs. REQUIRES: it has a ScoreFormat.
Result<std::vector<int>> encode_pair(const ServedModel& model, const TextPair& pair,
                                     std::optional<int> most, std::string_view field);

}  // namespace pagoda
