// Finds the threshold at which a filter cuts the candidates, likeliest first: by count (top-k) or
// by weight (top-p), without sorting.
//
// A radix select with histograms over 11, 11 and 10 of the 32 bits of ordered_bits(value). Each
// counts the values in one bucket of the histogram before it: the bucket in which the sum reaches
// the target. The time is linear in the number of candidates, with or without ties. Sums are of
// integers and exact. Thread-compatible: a finder's scratch memory has one user.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pagoda::cpu {

// Returns an integer that orders as the float does; -0 and +0 give the same integer.
std::uint32_t ordered_bits(float x);

struct Threshold {
  std::uint32_t key = 0;  // ordered_bits of the last value kept
  int num_ties = 0;       // how many of the values equal to it are kept; at least one

  float value() const;  // the last value kept
};

class ThresholdFinder {
 public:
  // Makes a finder with this scratch memory. keys, indices: [max_values]
  ThresholdFinder(std::span<std::uint32_t> keys, std::span<std::uint32_t> indices);

  // Returns the threshold that keeps the `count` largest values; all values if there are fewer.
  Threshold by_count(std::span<const float> values, std::size_t count);
  // Returns the threshold of the shortest prefix, largest value first, whose whole weights sum to
  // at least `target`, which is positive; all values if none does. weights: of weigh_row(),
  // ascending with the values and equal for equal values.
  Threshold by_weight(std::span<const float> values, std::span<const float> weights,
                      std::int64_t target);

 private:
  static constexpr std::size_t kNumBuckets = 1 << 11;

  template <typename WeightOf>
  Threshold find(std::span<const float> values, std::int64_t target, const WeightOf& weight_of);

  std::span<std::uint32_t> keys_;     // of the values that may still be the threshold
  std::span<std::uint32_t> indices_;  // their places in `values`
  std::array<std::int64_t, kNumBuckets> weights_;
  std::array<int, kNumBuckets> counts_;
};

}  // namespace pagoda::cpu
