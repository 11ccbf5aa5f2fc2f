// How a model that was trained to fill in reads a text around a gap: what stands before the gap and
// what stands behind it, each after a token of its own (Bavarian et al., 2022,
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
  // Stands behind both, before the answer; absent: the suffix stands before the prefix, whose end
  // the answer goes on from.
  std::optional<int> middle_id;
  // Stand before the name of what several files belong to, and before a file's name and text; absent:
  // the model was trained on single files.
  std::optional<int> repository_id, file_id;
};

// Returns the format whose tokens the vocabulary has, by the names that models give them; nothing
// where it has none.
std::optional<FillInFormat> find_fill_in_format(const Tokenizer& tokenizer);

// Returns the prompt whose answer belongs into the gap. `begin`: what the tokenizer puts before a
// text.
std::vector<int> fill_in_prompt(const FillInFormat& format, std::span<const int> begin,
                                std::span<const int> prefix, std::span<const int> suffix);

}  // namespace pagoda
