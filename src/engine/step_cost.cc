#include "engine/step_cost.h"

#include <algorithm>

namespace pagoda {
namespace {

double moved(double estimate, double measured) {
  if (estimate == 0) return measured;
  return (estimate + std::clamp(measured, estimate / 2, estimate * 2)) / 2;
}

}  // namespace

void StepCost::observe(int num_decodes, int num_prefill_tokens, double seconds) {
  if (seconds <= 0) return;
  if (num_prefill_tokens == 0) {
    decode_step_s_ = moved(decode_step_s_, seconds);
    num_decodes_measured_ = num_decodes;
    num_steps_since_ = 0;
    return;
  }
  ++num_steps_since_;
  const double of_decodes = num_decodes > 0 ? decode_step_s_ : 0;
  // A mixed step is not faster than its prompt tokens' share of it would be, or d is out of date.
  const double of_prefill = std::max(seconds - of_decodes, seconds / 8);
  prefill_token_s_ = moved(prefill_token_s_, of_prefill / num_prefill_tokens);
}

int StepCost::max_prefill_tokens(int num_prompts) const {
  if (decode_step_s_ == 0 || prefill_token_s_ == 0) return kUnlimited;
  const double num_decode_steps = kAimed * max_share(num_prompts);
  const double tokens = num_decode_steps * decode_step_s_ / prefill_token_s_;
  return static_cast<int>(std::clamp(tokens, 1.0, 1e6));
}

bool StepCost::wants_decodes_alone(int num_decodes) const {
  if (num_decodes == 0 || prefill_token_s_ == 0) return false;
  return decode_step_s_ == 0 || num_steps_since_ >= kRemeasureSteps ||
         num_decodes > num_decodes_measured_ * 3 / 2 + 4;
}

}  // namespace pagoda
