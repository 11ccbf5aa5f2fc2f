// DRY ("don't repeat yourself"): a penalty on the token that would go on with a repetition.
//
// Where the last L tokens stood earlier in the history, the token that came after them there loses
//   dry_multiplier * dry_base ^ (L - dry_allowed_length)   for the longest such L, from
// dry_allowed_length up. A match never reaches over a sequence breaker or out of the last
// dry_penalty_last_n tokens, and a breaker is itself never penalised. p-e-w, text-generation-webui
// pull request 5677, 2024; names and defaults as in llama.cpp.
//
// For every distance d back the state keeps how many of the last tokens equal those d places
// before. A token appended makes each of these runs one longer or 0, in one pass over them; many at
// once are caught up with by the Z-algorithm (Gusfield, "Algorithms on strings", 1997), linear in
// the history. Thread-compatible.
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

  // Takes its memory now: 17 bytes for each of `max_tokens`.
  DryState(const SamplingParams& params, int max_tokens);

  // Appends a token; `index` is the token's in SeenTokens.
  void append(int index, int token_id);
  void clear();
  // Brings the runs up to what was appended.
  void advance();

  // Changes logits [vocab_size] in place. `seen` knows every index that was appended.
  void apply(const SamplingParams& params, std::span<const SeenToken> seen,
             std::span<float> logits);

 private:
  void advance_by_one();
  void rebuild();
  // Returns the run at a lag, which says how far back it looks: so many of the last tokens equal
  // those `lag` places before them.
  std::int32_t& run(std::size_t lag) { return runs_[runs_.size() - lag]; }
  void find_longest(int allowed_length, int last_n);

  std::vector<int> breakers_;             // ascending token ids
  std::vector<std::int32_t> tokens_;      // the history, as indices
  std::vector<std::int32_t> runs_;        // [max_tokens]; by lag from the end, so that loops ascend
  std::vector<std::uint8_t> is_breaker_;  // [distinct tokens], by index
  std::vector<std::int32_t> longest_;     // [max_tokens], by index; 0 but during apply()
  std::vector<std::int32_t> penalised_;   // indices with a longest match
  std::size_t num_advanced_ = 0;          // of tokens_, that the runs know of
};

}  // namespace pagoda
