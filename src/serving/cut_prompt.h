// Prompts that are cut to a number of tokens, instead of being refused. Errors are as in
// serving/prompt.h.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "serving/prompt_input.h"
#include "serving/served_model.h"

namespace pagoda {

struct PromptCut {
  int most = 1;           // tokens that stay; at least 1
  bool keeps_end = true;  // keeps the last tokens; false: the first
};

// Returns the tokens of a prompt, cut. Those that the tokenizer adds around a text are not cut.
// Errors: tokenize_text()'s. Ids are not checked.
Result<std::vector<int>> encode_cut(const ServedModel& model, const PromptInput& prompt,
                                    bool add_special_tokens, const PromptCut& cut,
                                    std::string_view field);

// Returns the limit that a request's truncate_prompt_tokens sets for each input; absent: none. A
// limit above the context's length is an error.
Result<std::optional<int>> resolve_cut(const ServedModel& model, std::optional<int> asked);
// Does the same with a prompt that is answered. -1 leaves room for an answer of `max_tokens`, or of
// one token if that is absent.
Result<std::optional<int>> resolve_answered_cut(const ServedModel& model, std::optional<int> asked,
                                                std::optional<int> max_tokens);

}  // namespace pagoda
