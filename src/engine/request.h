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

// How the hidden states of a prompt's tokens, behind the last norm, become one vector.
enum class Pooling : std::uint8_t {
  kNone,
  kFirst,  // the first token's
  kLast,   // the last token's
  kMean,   // their mean, summed in the order of positions
};

// A request as its caller states it.
struct GenerationRequest {
  std::vector<int> prompt_token_ids;
  SamplingParams sampling;
  // Asks for the prompt's embedding and no tokens: sampling.max_tokens is 0, n is 1 and
  // prompt_logprobs absent then.
  Pooling pooling = Pooling::kNone;
  int priority = 0;  // lower runs first; first come first served within one
  // Only requests of one owner with one salt share cached blocks: how soon an answer begins would
  // tell others what was asked. Empty: no owner, and no salt.
  std::string cache_owner;
  std::string cache_salt;
  // A grammar's state before the first token; null: nothing holds the answer. A sample whose text
  // is complete ends with kStop, and no stop_token_id where it ends before an end of sequence.
  std::shared_ptr<const TokenMaskSource> mask_source;
  bool hash_logits = false;  // fills OutputEvent::logits_hash at the end
};

// A request that the engine has taken. The prompt is not empty and below the model's length, and
// the parameters are in range: EngineCore::check() has looked.
struct Request {
  RequestId id = 0;
  GenerationRequest generation;
  std::uint64_t seed = 0;  // the sampling's, or one drawn for the request
};

}  // namespace pagoda
