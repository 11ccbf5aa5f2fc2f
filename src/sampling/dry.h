// DRY ("don't repeat yourself"): a penalty on the token that would continue a repetition.
//
// If the last L tokens also stand earlier in the history, the token that follows them there loses
//   dry_multiplier * dry_base ^ (L - dry_allowed_length)
// for the longest such L, if it is at least dry_allowed_length. A match contains no sequence
// breaker and lies within the last dry_penalty_last_n tokens. A breaker itself is never penalised.
// p-e-w, text-generation-webui pull request 5677, 2024; names and defaults as in llama.cpp.
//
// For every distance d the state keeps a run: how many of the last tokens equal the token d places
// before them. An appended token makes each run one longer or 0, in one pass. Many tokens at once
// are handled by the Z-algorithm (Gusfield, "Algorithms on strings", 1997), linear in the history.
// Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampling_params.h"
#include "sampling/seen_tokens.h"

namespace pagoda {

class DryState {
 public:
  static bool is_needed(const SamplingParams& params);

  // Allocates all its memory: 17 bytes for each of `max_tokens`.
  DryState(const SamplingParams& params, int max_tokens);

  // Appends a token; `index` is its index in SeenTokens.
  void append(int index, int token_id);
  void clear();
  // Updates the runs with the appended tokens.
  void advance();

  // Changes logits [vocab_size] in place. `seen` has an entry for every index that was appended.
  void apply(const SamplingParams& params, std::span<const SeenToken> seen,
             std::span<float> logits);

 private:
  void advance_by_one();
  void rebuild();
  // Returns the run of a lag: how many of the last tokens equal the token `lag` places before them.
  std::int32_t& run(std::size_t lag) { return runs_[runs_.size() - lag]; }
  void find_longest(int allowed_length, int last_n);

  std::vector<int> breakers_;             // ascending token ids
  std::vector<std::int32_t> tokens_;      // the history, as indices
  std::vector<std::int32_t> runs_;        // [max_tokens]; lags descend, see run()
  std::vector<std::uint8_t> is_breaker_;  // [distinct tokens], by index
  std::vector<std::int32_t> longest_;     // [max_tokens], by index; all 0 outside apply()
  std::vector<std::int32_t> penalised_;   // indices whose longest_ is not 0
  std::size_t num_advanced_ = 0;          // how many of tokens_ the runs include
};

}  // namespace pagoda
