// Mirostat: sampling that keeps the surprise of the output near a target.
//
// A token's surprise is -log2 of its probability, in bits. Version 1 keeps the k likeliest tokens,
// with ties. By Zipf's law the token of rank k has the surprise mu; the law's exponent is estimated
// from the likeliest tokens. Version 2 drops tokens whose surprise is above mu, except the
// likeliest token. The drawn token's surprise among the kept tokens changes mu:
//   mu <- mu - eta * (surprise - tau),   from 2 * tau at the first token.
// Basu, Ramachandran, Keskar, Varshney, "Mirostat: a neural text decoding algorithm that directly
// controls perplexity", ICLR 2021; parameters as in llama.cpp.
//
// mu depends on probabilities, which the tokens alone do not give. So its value is kept for every
// output token, and a truncated history finds the mu that it had at its end. Thread-compatible.
#pragma once

#include <span>
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

// The number of likeliest tokens that version 1 looks at; the same as in llama.cpp.
inline constexpr int kMirostatEstimate = 100;

// Returns version 1's k, from 1 to vocab_size. likeliest: the logits of the kMirostatEstimate
// likeliest tokens, or of all that are finite, in descending order
int mirostat_top_k(std::span<const float> likeliest, float temperature, float mu, int vocab_size);

}  // namespace pagoda
