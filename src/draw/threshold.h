// The threshold of a filter among the candidates, likeliest first: by count (top-k) or by weight (top-p),
// without sorting.
//
// A radix select: histograms over 11, 11 and 10 bits of the values' ordered bits, likeliest bucket
// first, each over the bucket that the last one crossed in. Linear in the number of candidates
// whatever their values; ties take no longer. Sums are of integers and exact.
// Thread-compatible: one owner's scratch.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

namespace pagoda::cpu {

// Returns a float's bits as an integer of the same order; -0 and +0 are one.
std::uint32_t ordered_bits(float x);

struct Threshold {
  std::uint32_t key = 0;  // ordered_bits of the last value kept
  int num_ties = 0;       // how many that equal it belong to the prefix; at least one

  float value() const;  // the last value kept
};

class ThresholdFinder {
 public:
  // Makes a finder that works in this memory. keys, indices: [max_values]; the finder's memory.
  ThresholdFinder(std::span<std::uint32_t> keys, std::span<std::uint32_t> indices);

  // Returns the end of the shortest prefix, largest value first, that has `count` values; all where
  // there are fewer.
  Threshold by_count(std::span<const float> values, std::size_t count);
  // Returns the end of the shortest prefix whose weights reach `target`, which is positive; all
  // where they never do. Weights are those of weigh_row(), the target is of whole ones; they fall
  // with values: equal values have equal weights.
  Threshold by_weight(std::span<const float> values, std::span<const float> weights,
                      std::int64_t target);

 private:
  static constexpr std::size_t kNumBuckets = 1 << 11;

  template <typename WeightOf>
  Threshold find(std::span<const float> values, std::int64_t target, const WeightOf& weight_of);

  std::span<std::uint32_t> keys_;     // of those that may still be the threshold
  std::span<std::uint32_t> indices_;  // and where they are
  std::array<std::int64_t, kNumBuckets> weights_;
  std::array<int, kNumBuckets> counts_;
};

}  // namespace pagoda::cpu
