// SamplerState: what sampling needs to know of a sequence's past, kept up to date token by token:
// the tokens seen, for penalties; DRY's runs; mirostat's mu.
//
// A sequence has one only where its parameters ask for one of these, and it holds only what they
// ask for. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sampling/dry.h"
#include "sampling/host/mirostat.h"
#include "sampling/sampling_params.h"
#include "sampling/seen_tokens.h"

namespace pagoda {

class SamplerState {
 public:
  // Returns true where `params` ask for something that looks at the past.
  static bool is_needed(const SamplingParams& params);

  // Makes a state for a history of at most `max_tokens` tokens, whose memory is taken now: a step
  // takes none.
  SamplerState(const SamplingParams& params, int max_tokens);

  // Follows the history. tokens: prompt and output so far; the first num_prompt_tokens are the
  // prompt. A history that is truncated or edited raises its epoch. Within one epoch a tail that is
  // new is absorbed; another epoch, or fewer tokens than before, is a rebuild from the whole. Both
  // end in the same state.
  void sync(std::span<const int> tokens, int num_prompt_tokens, std::uint64_t epoch = 0);

  // Returns each token id of the history once, in the order of its first appearance; empty where
  // nothing asks.
  std::span<const SeenToken> entries() const;

  // Returns the state of DRY where the parameters ask for it.
  DryState* dry() { return dry_ ? &*dry_ : nullptr; }
  MirostatState* mirostat() { return mirostat_ ? &*mirostat_ : nullptr; }

 private:
  int max_tokens_;
  std::optional<SeenTokens> seen_;
  std::optional<DryState> dry_;
  std::optional<MirostatState> mirostat_;
  int num_synced_ = 0;
  std::uint64_t epoch_ = 0;
};

// Returns true where `params` ask for a change of the logits that depends on the past: penalties,
// DRY.
bool penalises(const SamplingParams& params);

// Changes logits [vocab_size] in place. Repetition over prompt and output: a positive logit is
// divided by the penalty, a negative one multiplied (Keskar et al., "CTRL", 2019). Frequency (times
// the count) and presence over the output alone.
void penalise_logits(const SamplingParams& params, std::span<const SeenToken> entries,
                     std::span<float> logits);

}  // namespace pagoda
