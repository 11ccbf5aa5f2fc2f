// TimedGeneration: runs prompts to whole answers, with the times that `run` prints; `chat` and
// `perplexity` use it too.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "core/clock.h"
#include "core/status.h"
#include "serving/text_generation.h"

namespace pagoda {

struct TimedAnswer {
  std::vector<int> token_ids;
  std::string text;
  std::vector<TokenLogprobs> logprobs;
  std::vector<std::optional<TokenLogprobs>> prompt_logprobs;
  FinishReason finish_reason = FinishReason::kNone;
  std::uint64_t logits_hash = 0;
  double prefill_s = 0;  // from the submission to the first token
  double decode_s = 0;   // from the first token to the last
};

// Takes pieces until the generation is finished, and calls `on_piece` with each as it arrives.
// start: when the prompt was submitted.
Result<TimedAnswer> collect(TextGeneration& generation, Clock::TimePoint start,
                            const std::function<void(const TextPiece&)>& on_piece = {});

// Submits all prompts and collects their pieces as they arrive. The answers are in the prompts'
// order, each with its own times.
Result<std::vector<TimedAnswer>> generate_together(ServedModel& model,
                                                   const std::vector<TextRequest>& requests);

}  // namespace pagoda
