// Passes over a row of logits, vectorised. They are the only part of sampling that touches the
// whole vocabulary.
//
// Results have the same bits on every machine: the order of additions and multiplications does not
// depend on the vector width. There is no fused multiply-add, and sums are of integers or in 16
// fixed lanes. `max` is the row's largest logit, finite. Thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace pagoda::cpu {

// Each block's maximum lets later passes skip the block: few blocks hold the likely tokens.
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

// Returns 0 if the row has a token, else the number to draw instead of one (drawn_token.h).
std::int32_t fault_of(const RowScan& scan);

// Returns the lowest id whose logit is `max`, the largest. block_max: of scan_row().
std::int32_t first_of_largest(std::span<const float> logits, std::span<const float> block_max,
                              float max);

// Returns the sum over exp(logit - max). Rounding errors of differences are corrected, exp is
// within 1.5 ulp, and sums are in float64, so the logarithm is good to 1e-7.
double sum_exp(std::span<const float> logits, float max);

// Computes weights[i] = token_weight(logits[i], max, inverse_temperature) (token_weight.h) as a
// share of the likeliest token's weight; whole_weight() gives the whole number back. block_sums[b]
// is the sum of block b's whole weights. Returns the sum of all. weights: [n], may be `logits`
// itself; block_sums: [num_row_blocks(n)].
std::int64_t weigh_row(std::span<const float> logits, float max, float inverse_temperature,
                       std::span<float> weights, std::span<std::int64_t> block_sums);

// Extra elements in the outputs of collect_row() and collect_between(), which store whole vectors.
inline constexpr std::size_t kStoreSlack = 16;

// Collects the logits that are at least `least`, which is finite, and their ids, in the order of
// the ids. Returns their number. ids, values: [n + kStoreSlack]; block_max: of scan_row().
std::size_t collect_row(std::span<const float> logits, std::span<const float> block_max,
                        float least, std::span<std::int32_t> ids, std::span<float> values);

// Collects the logits from `least` to `most` in the same way, and sets `above` to the whole weight
// of the logits above `most`. weights: of weigh_row().
std::size_t collect_between(std::span<const float> logits, std::span<const float> weights,
                            float least, float most, std::span<std::int32_t> ids,
                            std::span<float> values, std::int64_t& above);

// Sets the weights of logits below `least` to 0 and updates the sums of their blocks. Returns the
// sum of all weights that are left.
std::int64_t drop_below(std::span<const float> logits, float least, std::span<float> weights,
                        std::span<std::int64_t> block_sums);

}  // namespace pagoda::cpu
