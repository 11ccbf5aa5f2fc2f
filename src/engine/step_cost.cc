#include "engine/step_cost.h"

#include <algorithm>

namespace pagoda {
namespace {

// Weight of the newest step in the means over steps with prompt tokens.
constexpr double kWeightOfLast = 0.125;
constexpr int kFirstPrefills = 8;  // among these a faster step replaces all before it
// In tokens squared. If the variance of chunk lengths is larger, it determines g; if it is smaller,
// g stays near its last value.
constexpr double kKnownVariance = 4;
// Bound of g, so that noise among steps of nearly one length does not make tokens look free.
constexpr double kMostFirstTokens = 16;

double median(double a, double b, double c) {
  return std::max(std::min(a, b), std::min(std::max(a, b), c));
}

}  // namespace

void StepCost::observe(int num_decodes, int num_prefill_tokens, double seconds) {
  if (seconds <= 0) return;
  if (num_prefill_tokens == 0) {
    add_decodes(seconds);
    num_decodes_measured_ = num_decodes;
    num_steps_since_ = 0;
    return;
  }
  num_steps_since_ = std::min(num_steps_since_ + 1, kRemeasureSteps);
  const double of_decodes = num_decodes > 0 ? decode_step_s_ : 0;
  // Prompt tokens take at least an eighth of a mixed step. If d leaves them less, d is out of date.
  add_prefill(num_prefill_tokens, std::max(seconds - of_decodes, seconds / 8));
}

void StepCost::add_decodes(double seconds) {
  auto& last = last_decodes_;
  if (decode_step_s_ == 0) last.fill(seconds);
  last = {last[1], last[2], seconds};
  decode_step_s_ = median(last[0], last[1], last[2]);
}

void StepCost::add_prefill(double tokens, double seconds) {
  double weight = 1;
  if (num_prefills_ > 0) {
    const double expected = token_s() * (first_tokens_ + tokens);
    const bool is_faster = num_prefills_ < kFirstPrefills && seconds < expected;
    seconds = std::clamp(seconds, expected / 2, expected * 2);
    if (!is_faster) weight = kWeightOfLast;
  }
  num_prefills_ = std::min(num_prefills_ + 1, kFirstPrefills);
  const auto move = [weight](double& mean, double value) { mean += weight * (value - mean); };
  move(prefills_.tokens, tokens);
  move(prefills_.seconds, seconds);
  move(prefills_.tokens_squared, tokens * tokens);
  move(prefills_.tokens_times_seconds, tokens * seconds);
  const double mean = prefills_.tokens;
  const double variance = std::max(prefills_.tokens_squared - mean * mean, 0.0);
  const double covariance = prefills_.tokens_times_seconds - mean * prefills_.seconds;
  const double slope = (covariance + kKnownVariance * token_s()) / (variance + kKnownVariance);
  const double least = prefills_.seconds / (mean + kMostFirstTokens);
  first_tokens_ = std::max(prefills_.seconds / std::max(slope, least) - mean, 0.0);
}

int StepCost::max_prefill_tokens(int num_prompts) const {
  if (decode_step_s_ == 0 || prefills_.tokens == 0) return kUnlimited;
  const double seconds = kAimed * max_share(num_prompts) * decode_step_s_;
  const double tokens = seconds / token_s() - first_tokens_;
  return static_cast<int>(std::clamp(tokens, 1.0, 1e6));
}

bool StepCost::wants_decodes_alone(int num_decodes) const {
  if (num_decodes == 0 || prefills_.tokens == 0) return false;
  return decode_step_s_ == 0 || num_steps_since_ >= kRemeasureSteps ||
         num_decodes > num_decodes_measured_ * 3 / 2 + 4;
}

}  // namespace pagoda
