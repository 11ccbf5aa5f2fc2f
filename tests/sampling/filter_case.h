// The cases of filters.json (make_fixture.py): what numpy makes of rows of logits.
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "sampling/host/sampler.h"

namespace pagoda {

struct FilterCase {
  std::string text;  // its line of the file, but for long lists
  std::string row_name;
  std::vector<float> logits;  // [vocab_size]
  SamplingParams params;
  std::vector<int> tokens;  // prompt and output
  int num_prompt_tokens = 0;
  std::vector<int> eos_token_ids;

  std::vector<double> changed;        // [vocab_size]; the logits after biases, bans and penalties
  double temperature = 1;             // where it is dynamic, what it comes to
  std::vector<int> kept;              // ascending; where XTC's coin is thrown or not, without it
  std::vector<double> probabilities;  // [kept], of what is drawn; empty where many are kept
  std::uint64_t seed = 0;
  std::vector<int> drawn;   // at positions from 0 on
  bool is_counted = false;  // whether its probabilities are for a million draws

  int vocab_size() const { return static_cast<int>(logits.size()); }
  // Returns the row of a position. It has the whole case but its state, which mirostat's draws
  // move.
  RowSampling at(int position) const;
};

const std::vector<FilterCase>& filter_cases();  // read once

// Draws of one row that follow one another.
struct MirostatRun {
  std::vector<float> logits;
  SamplingParams params;
  std::uint64_t seed = 0;
  std::vector<std::pair<int, double>> steps;  // the token at each position, and the mu behind it
};

std::vector<MirostatRun> read_mirostat_runs();

}  // namespace pagoda
