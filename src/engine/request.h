// What the scheduler knows of a request: token ids, parameters, and how it may end.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/token_mask_source.h"
#include "sampling/sampling_params.h"

namespace pagoda {

using RequestId = std::uint64_t;

enum class FinishReason : std::uint8_t { kNone, kStop, kLength, kCancelled, kError };

// vLLM's words: "stop", "length", "abort", "error"; empty for kNone.
constexpr std::string_view finish_reason_name(FinishReason reason) {
  switch (reason) {
    case FinishReason::kNone:
      return "";
    case FinishReason::kStop:
      return "stop";
    case FinishReason::kLength:
      return "length";
    case FinishReason::kCancelled:
      return "abort";
    case FinishReason::kError:
      return "error";
  }
  return "";
}

// Checked before it comes here: the prompt is not empty and below the model's length, parameters
// are in range.
struct Request {
  RequestId id = 0;
  std::vector<int> prompt_token_ids;
  SamplingParams params;   // params.n samples, each a sequence of its own
  std::uint64_t seed = 0;  // params.seed, or the one drawn at admission
  int priority = 0;        // lower runs first; first come first served within one
  std::string cache_salt;  // only requests with the same one share cached blocks
  // The grammar's state before the first token, which each sample clones; null: there is none.
  std::shared_ptr<const TokenMaskSource> mask_source;
};

}  // namespace pagoda
