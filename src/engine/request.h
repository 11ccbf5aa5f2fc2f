// A request for tokens: what a caller asks for, what the engine keeps of it, and how it may end.
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

// Returns vLLM's word for a reason: "stop", "length", "abort", "error"; empty for kNone.
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

// How the hidden states of a prompt's tokens, after the last norm, become one vector.
enum class Pooling : std::uint8_t {
  kNone,
  kFirst,  // the first token's
  kLast,   // the last token's
  kMean,   // the mean of all, summed in the order of positions
};

// A request as its caller states it.
struct GenerationRequest {
  std::vector<int> prompt_token_ids;
  SamplingParams sampling;
  // Asks for the prompt's embedding and no tokens. Then sampling.max_tokens is 0, n is 1 and
  // prompt_logprobs is absent.
  Pooling pooling = Pooling::kNone;
  int priority = 0;  // lower runs first; equal ones run in order of arrival
  // Requests share cached blocks only if owner and salt are the same. Otherwise the time to the
  // first token would tell others what was asked. Empty: no owner, and no salt.
  std::string cache_owner;
  std::string cache_salt;
  // A grammar's state before the first token; null: no grammar. A sample whose text is complete
  // ends with kStop. It has no stop_token_id if it ends without an end-of-sequence token.
  std::shared_ptr<const TokenMaskSource> mask_source;
  bool hash_logits = false;  // fills OutputEvent::logits_hash at the end
};

// A request that the engine has taken. EngineCore::check() has verified that the prompt is not
// empty and short enough, and that the parameters are in range.
struct Request {
  RequestId id = 0;
  GenerationRequest generation;
  std::uint64_t seed = 0;  // sampling.seed, or one drawn for the request
};

}  // namespace pagoda
