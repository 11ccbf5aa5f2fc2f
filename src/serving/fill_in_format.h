// How a model trained for fill-in-the-middle reads a text with a gap. The text before the gap and
// the text after it each follow a token of their own (Bavarian et al., 2022,
// https://arxiv.org/abs/2207.14255).
#pragma once

#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "core/status.h"
#include "text/tokenizer.h"

namespace pagoda {

struct FillInFormat {
  int prefix_id = 0;
  int suffix_id = 0;
  // The token between both texts and the answer. Absent: the suffix is put before the prefix, and
  // the answer continues the prefix.
  std::optional<int> middle_id;
  // Tokens before the name of a repository, and before a file's name and text. Absent: the model
  // was trained on single files.
  std::optional<int> repository_id, file_id;
};

// Returns the format whose tokens are in the vocabulary, among the names that known models use;
// nothing if there is none.
std::optional<FillInFormat> find_fill_in_format(const Tokenizer& tokenizer);

// Returns a prompt whose answer fills the gap. `begin`: the tokens that the tokenizer puts before a
// text.
std::vector<int> fill_in_prompt(const FillInFormat& format, std::span<const int> begin,
                                std::span<const int> prefix, std::span<const int> suffix);

}  // namespace pagoda
