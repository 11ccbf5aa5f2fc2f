// Passes over a row of logits, vectorised. They are the only part of sampling that touches the
// whole vocabulary.
//
// The same bits on every machine: additions and multiplications in an order that the width of its
// vectors doesn't change (no fused multiply-add, sums in 16 fixed lanes or of integers). `max` is
// the row's largest logit, finite. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pagoda::cpu {

// Block maxima let later passes skip what can't matter: few blocks hold the likely tokens.
inline constexpr std::size_t kRowBlock = 128;  // logits

constexpr std::size_t num_row_blocks(std::size_t n) {
  return (n + kRowBlock - 1) / kRowBlock;
}

struct RowScan {
  float max = 0;
  bool valid = false;  // no NaN, no +inf
};

// Scans a row once. block_max: [num_row_blocks(n)], each block's largest logit.
RowScan scan_row(std::span<const float> logits, std::span<float> block_max);

// Returns the number that stands for a token where the row has none (drawn_token.h); 0: it has one.
std::int32_t fault_of(const RowScan& scan);

// Returns the lowest id whose logit is `max`, the largest. block_max: of scan_row().
std::int32_t first_of_largest(std::span<const float> logits, std::span<const float> block_max,
                              float max);

// Returns the sum over exp(logit - max). Differences keep their rounding error, exp is within 1.5
// ulp, sums are in float64: the logarithm is good to 1e-7.
double sum_exp(std::span<const float> logits, float max);

// Computes weights[i] = token_weight(logits[i], max, inverse_temperature) (token_weight.h) as a
// share of the likeliest token's, so that whole_weight() gives it back; block_sums[b] are the sums
// of the whole ones; returns their total. weights: [n], which may be `logits` itself; block_sums:
// [num_row_blocks(n)].
std::int64_t weigh_row(std::span<const float> logits, float max, float inverse_temperature,
                       std::span<float> weights, std::span<std::int64_t> block_sums);

// How much more than its values an array must hold that the next two write: they store whole
// vectors.
inline constexpr std::size_t kStoreSlack = 16;

// Collects the logits from `least`, which is finite, up, into ids and values in the order of the
// ids. Returns how many they are. ids, values: [n + kStoreSlack]; block_max: of scan_row().
std::size_t collect_row(std::span<const float> logits, std::span<const float> block_max,
                        float least, std::span<std::int32_t> ids, std::span<float> values);

// Does the same for those from `least` to `most`; `above` becomes the whole weight of those above
// `most`. weights: of weigh_row().
std::size_t collect_between(std::span<const float> logits, std::span<const float> weights,
                            float least, float most, std::span<std::int32_t> ids,
                            std::span<float> values, std::int64_t& above);

// Takes the weights of logits below `least` away, and brings their blocks' sums up to date; returns
// the total that is left.
std::int64_t drop_below(std::span<const float> logits, float least, std::span<float> weights,
                        std::span<std::int64_t> block_sums);

}  // namespace pagoda::cpu
