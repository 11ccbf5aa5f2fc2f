#include "sampling/host/typical.h"

#include <algorithm>
#include <bit>
#include <cmath>

namespace pagoda {
namespace {

// Weights, at most 1, become integers, so that their sums are exact in any order.
constexpr double kWeightUnit = 0x1p40;

std::uint64_t integer_weight(float weight) {
  return static_cast<std::uint64_t>(double{weight} * kWeightUnit);
}

std::uint64_t key_of(std::uint32_t distance, std::size_t place) {
  return (std::uint64_t{distance} << 32) | place;
}

std::size_t place_of(std::uint64_t key) {
  return static_cast<std::uint32_t>(key);
}

// Returns the 11 highest bits after the sign bit, which is 0.
std::size_t bucket_of(std::uint32_t distance) {
  return distance >> 20;
}

}  // namespace

// Keeps the most typical tokens. A surprise is log(total) + (max - logit) / temperature, and the
// entropy is the mean surprise. log(total) cancels in their difference, so both leave it out.
std::size_t TypicalFilter::keep(const Candidates& candidates, float temperature, float typical_p) {
  const double inverse_temperature = 1.0 / temperature;
  const float max = *std::max_element(candidates.logits.begin(), candidates.logits.end());
  const auto surprise = [&](std::size_t i) {
    return (double{max} - candidates.logits[i]) * inverse_temperature;
  };
  double mean = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) mean += candidates.weights[i] * surprise(i);
  mean /= total_weight(candidates);
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const auto distance = static_cast<float>(std::abs(surprise(i) - mean));
    distances_[i] = std::bit_cast<std::uint32_t>(distance);
  }
  const std::uint64_t last = find_last_kept(candidates, typical_p);
  return keep_if(candidates, [&](std::size_t i) { return key_of(distances_[i], i) <= last; });
}

// Returns the key of the token that crosses typical_p: finds its bucket first, then its place in
// the bucket.
std::uint64_t TypicalFilter::find_last_kept(const Candidates& candidates, float typical_p) {
  bucket_weights_.fill(0);
  std::uint64_t total = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    const std::uint64_t weight = integer_weight(candidates.weights[i]);
    bucket_weights_[bucket_of(distances_[i])] += weight;
    total += weight;
  }
  auto left = static_cast<std::uint64_t>(std::ceil(static_cast<double>(total) * typical_p));
  left = std::clamp<std::uint64_t>(left, 1, total);
  std::size_t bucket = 0;
  while (bucket_weights_[bucket] < left) left -= bucket_weights_[bucket++];
  std::size_t count = 0;
  for (std::size_t i = 0; i < candidates.size(); ++i) {
    if (bucket_of(distances_[i]) == bucket) keys_[count++] = key_of(distances_[i], i);
  }
  return find_last_of(candidates, count, left);
}

// Returns the key, among the first `count` in ascending order, at which the sum of weights reaches
// `left`. Each pass halves the keys that it may be among.
std::uint64_t TypicalFilter::find_last_of(const Candidates& candidates, std::size_t count,
                                          std::uint64_t left) {
  const auto weight_of = [&](std::uint64_t key) {
    return integer_weight(candidates.weights[place_of(key)]);
  };
  auto begin = keys_.get();
  auto end = begin + static_cast<std::ptrdiff_t>(count);
  while (end - begin > 1) {
    const auto middle = begin + (end - begin) / 2;
    std::nth_element(begin, middle, end);
    std::uint64_t before = 0;
    for (auto it = begin; it != middle; ++it) before += weight_of(*it);
    if (before >= left) {
      end = middle;
    } else {
      left -= before;
      begin = middle;
    }
  }
  return *begin;
}

}  // namespace pagoda
