#include "sampling/host/dynamic_temperature.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace pagoda {
namespace {

// Sums are split over this many lanes, which do not depend on each other.
constexpr std::size_t kNumLanes = 8;

// Returns the sum of weight * (max - logit).
double sum_surprises(std::span<const float> logits, float max, std::span<const float> weights) {
  std::array<double, kNumLanes> lanes = {};
  const auto add = [&](std::size_t i, std::size_t lane) {
    // A token with weight 0 may have the logit -inf: without this the product would be NaN.
    const float distance = weights[i] > 0 ? max - logits[i] : 0.0f;
    lanes[lane] += double{weights[i]} * distance;
  };
  std::size_t first = 0;
  for (; first + kNumLanes <= logits.size(); first += kNumLanes) {
    for (std::size_t lane = 0; lane < kNumLanes; ++lane) add(first + lane, lane);
  }
  for (std::size_t i = first; i < logits.size(); ++i) add(i, i - first);
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  return sum;
}

}  // namespace

float dynamic_temperature(const SamplingParams& params, std::span<const float> logits, float max,
                          std::span<const float> weights, double total) {
  const float least = std::max(0.0f, params.temperature - params.dynatemp_range);
  const float most = params.temperature + params.dynatemp_range;
  const auto num_tokens = std::count_if(logits.begin(), logits.end(), [](float logit) {
    return logit > -std::numeric_limits<float>::infinity();
  });
  if (num_tokens <= 1) return params.temperature;
  const double entropy = std::log(total) + sum_surprises(logits, max, weights) / total;
  const double share = std::clamp(entropy / std::log(static_cast<double>(num_tokens)), 0.0, 1.0);
  return static_cast<float>(least + (most - least) * std::pow(share, params.dynatemp_exponent));
}

}  // namespace pagoda
