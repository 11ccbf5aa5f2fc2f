// Converts inputs that are embedded or scored to token ids for the engine. Errors are as in
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

// How inputs to be embedded are encoded.
struct InputEncoding {
  bool add_special_tokens = true;
  std::string_view prompt = {};  // put before each text, not before token ids
  // The most tokens of an input, from 1 to most_embedded(); longer inputs are cut. Absent: they are
  // errors. The tokens that the tokenizer adds around a text are not cut.
  std::optional<int> cut_to;
  bool keeps_end = true;  // keeps the last tokens; false: the first
};

// Returns the most tokens of an input that the model can embed: the smaller of the context's length
// and EmbeddingFormat::max_tokens.
int most_embedded(const ServedModel& model);

// Returns the text that the model's EmbeddingFormat puts before each input, by its name (absent:
// the default). An error has the field prompt_name.
Result<std::string_view> find_prompt(const ServedModel& model,
                                     const std::optional<std::string>& name);

// Returns the token ids of each input. Errors have the field `field`: an input that is empty,
// longer than the context (reason context_length_exceeded), or with ids out of range; or a text if
// the model has no tokenizer. If texts are cut, tokenize_text()'s errors are possible too.
Result<std::vector<std::vector<int>>> encode_inputs(const ServedModel& model,
                                                    const std::vector<PromptInput>& inputs,
                                                    const InputEncoding& encoding,
                                                    std::string_view field);

struct TextPair {
  std::string_view query, document;
};
// Returns the token ids of a pair in the model's ScoreFormat. With `most`, the document is cut at
// its end until the pair has at most so many tokens. Errors have the field `field`: those of
// encode_inputs(), and a cut if the ScoreFormat has a prompt. REQUIRES: the model has a
// ScoreFormat.
Result<std::vector<int>> encode_pair(const ServedModel& model, const TextPair& pair,
                                     std::optional<int> most, std::string_view field);

}  // namespace pagoda
