// What the scheduler knows of a request: token ids, parameters, and how it may end.
#pragma once

#include <cstdint>
#include <vector>

#include "sampling/sampling_params.h"

namespace pagoda {

using RequestId = std::uint64_t;

enum class FinishReason : std::uint8_t { kNone, kStop, kLength, kCancelled, kError };

// Checked before it comes here: the prompt is not empty and below the model's length, parameters
// are in range.
struct Request {
  RequestId id = 0;
  std::vector<int> prompt_token_ids;
  SamplingParams params;   // params.n samples, each a sequence of its own
  std::uint64_t seed = 0;  // params.seed, or the one drawn at admission
  int priority = 0;        // lower runs first; first come first served within one
};

}  // namespace pagoda
