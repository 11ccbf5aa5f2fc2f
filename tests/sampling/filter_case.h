// The cases of filters.json (make_fixture.py): numpy's results for rows of logits.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sampling/host/sampler.h"

namespace pagoda {

struct FilterCase {
  std::string text;  // the row's name and the parameters
  std::string row_name;
  std::vector<float> logits;  // [vocab_size]
  SamplingParams params;
  std::vector<int> tokens;  // prompt and output
  int num_prompt_tokens = 0;
  std::vector<int> eos_token_ids;

  std::vector<double> changed;        // [vocab_size]; the logits after biases, bans and penalties
  double temperature = 1;             // after dynamic temperature, if it is on
  std::vector<int> kept;              // ascending; without XTC if that depends on a coin
  std::vector<double> probabilities;  // [kept], each token's in a draw; empty if many
  std::uint64_t seed = 0;
  std::vector<int> drawn;   // at positions 0, 1, ...
  bool is_counted = false;  // whether draws_test.cc makes a million draws

  int vocab_size() const { return static_cast<int>(logits.size()); }
  // Returns the row of a position, without a state, since mirostat's draws change it.
  RowSampling at(int position) const;
};

const std::vector<FilterCase>& filter_cases();  // reads the file once

// Successive draws from one row.
struct MirostatRun {
  std::vector<float> logits;
  SamplingParams params;
  std::uint64_t seed = 0;
  std::vector<std::pair<int, double>> steps;  // the token at each position, and the mu after it
};

std::vector<MirostatRun> read_mirostat_runs();

}  // namespace pagoda
