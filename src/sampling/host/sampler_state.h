// SamplerState: what sampling needs to know of a sequence's past, kept up to date token by token:
// the tokens seen, for penalties; DRY's runs; mirostat's mu.
//
// A sequence has a state only if its parameters ask for one of these, and only the parts that they
// ask for. Thread-compatible.
#pragma once

#include <cstdint>
#include <optional>
#include <span>

#include "sampling/dry.h"
#include "sampling/host/mirostat.h"
#include "sampling/penalty_window.h"
#include "sampling/sampling_params.h"
#include "sampling/seen_tokens.h"

namespace pagoda {

class SamplerState {
 public:
  // Returns true if `params` ask for something that depends on the past.
  static bool is_needed(const SamplingParams& params);

  // Makes a state for a history of at most `max_tokens` tokens. Allocates all its memory, so that
  // steps allocate none.
  SamplerState(const SamplingParams& params, int max_tokens);

  // Updates the state to this history. tokens: prompt and output so far; the first
  // num_prompt_tokens are the prompt. epoch: raised when a history is truncated or edited. In the
  // same epoch, the new tokens are added; in another epoch, or with fewer tokens than before, the
  // state is rebuilt from all tokens. Both give the same state.
  void sync(std::span<const int> tokens, int num_prompt_tokens, std::uint64_t epoch = 0);

  // Returns each token id of the history once, in the order of its first appearance; empty if no
  // parameter needs it. With a window, only the tokens in it are counted.
  std::span<const SeenToken> entries() const;

  // Returns the state of DRY, null if the parameters do not use it. mirostat() is alike.
  DryState* dry() { return dry_ ? &*dry_ : nullptr; }
  MirostatState* mirostat() { return mirostat_ ? &*mirostat_ : nullptr; }

 private:
  int max_tokens_;
  PenaltyWindow window_;
  std::optional<SeenTokens> seen_;
  std::optional<DryState> dry_;
  std::optional<MirostatState> mirostat_;
  int num_synced_ = 0;
  int num_left_ = 0;  // tokens that have left the window
  std::uint64_t epoch_ = 0;
};

// Returns true if `params` ask for a change of the logits that depends on the past: penalties or
// DRY.
bool penalises(const SamplingParams& params);

// Changes logits [vocab_size] in place. The repetition penalty, for prompt and output, divides a
// positive logit and multiplies a negative one (Keskar et al., "CTRL", 2019). Frequency, times the
// count, and presence are subtracted for tokens of the output alone. Where a window is given, all
// three are for the tokens in it (sampling/penalty_window.h).
void penalise_logits(const SamplingParams& params, std::span<const SeenToken> entries,
                     std::span<float> logits);

}  // namespace pagoda
