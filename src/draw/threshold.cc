#include "draw/threshold.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/check.h"
#include "draw/token_weight.h"

namespace pagoda::cpu {

std::uint32_t ordered_bits(float x) {
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(x + 0.0f);  // -0 + 0 is +0
  return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

float Threshold::value() const {
  return std::bit_cast<float>(key & 0x80000000u ? key & 0x7fffffffu : ~key);
}

ThresholdFinder::ThresholdFinder(std::span<std::uint32_t> keys, std::span<std::uint32_t> indices)
    : keys_(keys), indices_(indices) {}

template <typename WeightOf>
Threshold ThresholdFinder::find(std::span<const float> values, std::int64_t target,
                                const WeightOf& weight_of) {
  PAGODA_CHECK(!values.empty() && values.size() <= keys_.size(),
               "[sampler] a filter has no candidates, or too many");
  std::size_t num_left = values.size();
  for (std::size_t i = 0; i < num_left; ++i) {
    keys_[i] = ordered_bits(values[i]);
    indices_[i] = static_cast<std::uint32_t>(i);
  }
  for (const auto& [shift, num_bits] : {std::pair{21, 11}, std::pair{10, 11}, std::pair{0, 10}}) {
    const std::uint32_t num_buckets = 1u << num_bits;
    std::fill_n(weights_.begin(), num_buckets, std::int64_t{0});
    std::fill_n(counts_.begin(), num_buckets, 0);
    for (std::size_t i = 0; i < num_left; ++i) {
      const std::uint32_t bucket = (keys_[i] >> shift) & (num_buckets - 1);
      weights_[bucket] += weight_of(indices_[i]);
      ++counts_[bucket];
    }
    // The bucket in which the sum reaches the target; if none does, the last bucket that is not
    // empty.
    std::uint32_t crossing = 0;
    std::int64_t before = 0;
    std::int64_t reached = 0;
    for (std::uint32_t bucket = num_buckets; bucket-- > 0;) {
      if (counts_[bucket] == 0) continue;
      crossing = bucket;
      before = reached;
      reached += weights_[bucket];
      if (reached >= target) break;
    }
    target -= before;
    std::size_t kept = 0;
    for (std::size_t i = 0; i < num_left; ++i) {
      keys_[kept] = keys_[i];
      indices_[kept] = indices_[i];
      kept += ((keys_[i] >> shift) & (num_buckets - 1)) == crossing;
    }
    num_left = kept;
  }
  // One value is left; its copies have equal weights.
  Threshold threshold = {.key = keys_[0], .num_ties = static_cast<int>(num_left)};
  const std::int64_t weight = weight_of(indices_[0]);
  if (weight > 0) {
    const std::int64_t wanted = (target + weight - 1) / weight;
    if (wanted < threshold.num_ties) threshold.num_ties = std::max(1, static_cast<int>(wanted));
  }
  return threshold;
}

Threshold ThresholdFinder::by_count(std::span<const float> values, std::size_t count) {
  return find(values, static_cast<std::int64_t>(count),
              [](std::size_t) { return std::int64_t{1}; });
}

Threshold ThresholdFinder::by_weight(std::span<const float> values, std::span<const float> weights,
                                     std::int64_t target) {
  return find(values, target, [weights](std::size_t i) { return whole_weight(weights[i]); });
}

}  // namespace pagoda::cpu
