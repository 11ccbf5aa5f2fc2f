// Mirostat version 2: sampling that holds the surprise of the output at a wished value.
//
// Tokens whose surprise, -log2 of their probability, is above mu are dropped (the likeliest
// stays). The drawn token's surprise among the rest, in bits, moves mu:
//   mu <- mu - eta * (surprise - tau),   from 2 * tau at the first token.
// Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural text decoding algorithm that directly
// controls perplexity", ICLR 2021; parameters as in llama.cpp.
//
// mu depends on probabilities that the tokens alone do not tell, so it is kept for every output
// token: a history that is cut short finds the mu that held there. Thread-compatible.
#pragma once

#include <vector>

#include "sampling/sampling_params.h"

namespace pagoda {

class MirostatState {
 public:
  static bool is_needed(const SamplingParams& params);

  // Makes a state for at most `max_output_tokens`; takes its memory now.
  MirostatState(const SamplingParams& params, int max_output_tokens);

  // Follows the history, which has `num_output_tokens`. Where it grew by tokens that were not drawn
  // with it, mu stays.
  void sync(int num_output_tokens);
  float mu() const { return mu_.back(); }
  // Moves mu. `surprise`: of the token drawn at the history's end, in bits.
  void record(const SamplingParams& params, double surprise);

 private:
  std::vector<float> mu_;  // [1 + output tokens]; before each, and before the next one
};

}  // namespace pagoda
