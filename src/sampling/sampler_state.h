// SamplerState: what penalties need to know of a sequence's past, kept up to date token by token.
//
// A sequence has one only where its parameters ask for a penalty. History is append-only; sync()
// absorbs the tail that is new and equals a rebuild from the whole. Thread-compatible.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "sampling/sampling_params.h"

namespace pagoda {

class SamplerState {
 public:
  struct Entry {
    int token_id = 0;
    int output_count = 0;  // 0: stands in the prompt alone
  };

  // True where `params` ask for something that looks at the past.
  static bool is_needed(const SamplingParams& params);

  // For a history of at most `max_tokens` tokens, whose memory is taken now: a step takes none.
  explicit SamplerState(int max_tokens);

  // tokens: prompt and output so far, at least as long as at the last call and with the same
  // beginning; the first num_prompt_tokens are the prompt.
  void sync(std::span<const int> tokens, int num_prompt_tokens);

  // Each token id of the history once, in the order of its first appearance.
  std::span<const Entry> entries() const { return entries_; }

 private:
  Entry& entry_of(int token_id);

  std::vector<Entry> entries_;
  std::vector<std::int32_t>
      table_;  // open addressing over entries_; -1: empty; its size is a power of two
  int num_synced_ = 0;
};

// logits [vocab_size], changed in place. Repetition over prompt and output: a positive logit is
// divided by the penalty, a negative one multiplied (Keskar et al., "CTRL", 2019). Frequency (times
// the count) and presence over the output alone.
void apply_penalties(const SamplingParams& params, std::span<const SamplerState::Entry> entries,
                     std::span<float> logits);

}  // namespace pagoda
