// SamplingParams: what a request asks of its sampling. Names, meanings and ranges are vLLM's.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "core/status.h"

namespace pagoda {

struct SamplingParams {
  float temperature = 1.0f;  // 0: greedy
  int top_k = 0;             // 0 (or -1 in requests): off
  float top_p = 1.0f;        // 1: off; the token that crosses p is kept
  float min_p = 0.0f;        // 0: off; a share of the most likely token's probability
  float repetition_penalty = 1.0f;
  float presence_penalty = 0.0f;
  float frequency_penalty = 0.0f;
  std::optional<std::uint64_t> seed;  // absent: drawn at admission and kept
  int n = 1;                          // samples of one prompt; sample i draws with (seed, i)
  int max_tokens = 16;                // of output
  int min_tokens = 0;                 // before which no end-of-sequence or stop id is sampled
  bool ignore_eos = false;
  std::vector<int> stop_token_ids;
  std::optional<int> logprobs;         // 0: the chosen token's alone; k: and the k likeliest
  std::optional<int> prompt_logprobs;  // the same for the prompt's tokens
};

inline constexpr int kMaxLogprobs = 20;  // vLLM's --max-logprobs default
inline constexpr int kMaxSamples = 128;  // n

// kInvalidArgument names the field and its range.
Status validate(const SamplingParams& params, int vocab_size);

}  // namespace pagoda
