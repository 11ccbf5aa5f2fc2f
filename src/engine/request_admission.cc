#include "engine/request_admission.h"

#include <vector>

#include "draw/rng.h"

namespace pagoda {
namespace {

Status check_prompt(const std::vector<int>& ids, const EngineLimits& limits, int max_tokens) {
  if (ids.empty()) return invalid_argument("[prompt] expected one token at least, got none");
  const int room = limits.max_model_len - (max_tokens > 0 ? 1 : 0);
  if (static_cast<std::int64_t>(ids.size()) > room) {
    return invalid_argument(
        "[prompt] expected at most {} tokens (the context of {} with room for an answer), got {}",
        room, limits.max_model_len, ids.size());
  }
  for (const int id : ids) {
    if (id < 0 || id >= limits.vocab_size)
      return invalid_argument("[prompt] expected token ids in [0, {}), got {}", limits.vocab_size,
                              id);
  }
  return ok_status();
}

}  // namespace

Status check_request(const GenerationRequest& request, const EngineLimits& limits,
                     const Scheduler& scheduler) {
  const SamplingParams& sampling = request.sampling;
  if (request.pooling == Pooling::kNone) {
    if (!limits.has_head)
      return invalid_argument(
          "[request] this checkpoint makes no texts: it has no head for tokens");
    PAGODA_RETURN_IF_ERROR(validate(sampling, limits.vocab_size));
  } else if (sampling.max_tokens != 0 || sampling.n != 1 || sampling.prompt_logprobs) {
    return invalid_argument("[embedding] expected max_tokens 0, n 1 and no prompt_logprobs");
  }
  PAGODA_RETURN_IF_ERROR(check_prompt(request.prompt_token_ids, limits, sampling.max_tokens));
  const int num_prompt_tokens = static_cast<int>(request.prompt_token_ids.size());
  if (scheduler.check(num_prompt_tokens, sampling) == Admission::kAdmitted) return ok_status();
  return invalid_argument(
      "[prompt] {} tokens and the answer's {} need more blocks than the KV cache has",
      num_prompt_tokens, sampling.max_tokens);
}

std::uint64_t drawn_seed(std::uint64_t index, std::uint64_t engine_seed) {
  constexpr int kDroppedBits = 64 - 53;
  const PhiloxCounter words = philox4x32(
      {static_cast<std::uint32_t>(index), static_cast<std::uint32_t>(index >> 32), 0, 0},
      {static_cast<std::uint32_t>(engine_seed), static_cast<std::uint32_t>(engine_seed >> 32)});
  return ((std::uint64_t{words[0]} << 32) | words[1]) >> kDroppedBits;
}

}  // namespace pagoda
