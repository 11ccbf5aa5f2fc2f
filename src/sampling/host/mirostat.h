// Mirostat version 2: sampling that keeps the surprise of the output near a target.
//
// Tokens whose surprise, -log2 of their probability, is above mu are dropped, except the likeliest
// token. The drawn token's surprise among the kept tokens, in bits, changes mu:
//   mu <- mu - eta * (surprise - tau),   from 2 * tau at the first token.
// Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural text decoding algorithm that directly
// controls perplexity", ICLR 2021; parameters as in llama.cpp.
//
// mu depends on probabilities, which the tokens alone do not give. So its value is kept for every
// output token, and a truncated history finds the mu that it had at its end. Thread-compatible.
#pragma once

#include <vector>

#include "sampling/sampling_params.h"

namespace pagoda {

class MirostatState {
 public:
  static bool is_needed(const SamplingParams& params);

  // Makes a state for at most `max_output_tokens`; allocates all its memory.
  MirostatState(const SamplingParams& params, int max_output_tokens);

  // Updates the state to a history with `num_output_tokens`. For each token that was appended
  // without record(), mu stays the same.
  void sync(int num_output_tokens);
  float mu() const { return mu_.back(); }
  // Updates mu. `surprise`: in bits, of the token drawn at the history's end.
  void record(const SamplingParams& params, double surprise);

 private:
  std::vector<float> mu_;  // [1 + output tokens]; before each of them and before the next
};

}  // namespace pagoda
