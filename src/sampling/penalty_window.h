// PenaltyWindow: the tokens of a history that the repetition, frequency and presence penalties
// count.
//
// A request without repeat_last_n has vLLM's penalties: repetition counts every token, frequency
// and presence those of the output. With it the penalties are llama.cpp's: all three count the last
// tokens, of the prompt as of the output.
#pragma once

#include <algorithm>
#include <optional>

#include "sampling/sampling_params.h"

namespace pagoda {

class PenaltyWindow {
 public:
  explicit PenaltyWindow(const SamplingParams& params) : last_n_(params.repeat_last_n) {}

  // Returns the index of the first token that counts, in a history of `num_tokens`.
  int begin(int num_tokens) const {
    return last_n_.value_or(-1) < 0 ? 0 : std::max(0, num_tokens - *last_n_);
  }
  // Returns whether the token at `index` counts as one of the output.
  bool is_output(int index, int num_prompt_tokens) const {
    return last_n_.has_value() || index >= num_prompt_tokens;
  }

 private:
  std::optional<int> last_n_;
};

}  // namespace pagoda
