// RowSampler: filters one row and draws from it, on the host. The cpu bodies of the sampling ops.
//
// Each filter first finds a floor below which it keeps nothing, by vectorised passes over the
// vocabulary (row_kernels.h). So it looks at few logits one by one, and sorts no row.
// Thread-compatible: each sampler has memory of its own.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

#include "draw/threshold.h"

namespace pagoda::cpu {

// The same fields as RowFilters of top_k_top_p_min_p.h, for one row.
struct RowFilter {
  int top_k = 0;
  float top_p = 1;
  float min_p_margin = -std::numeric_limits<float>::infinity();

  bool keeps_all(int vocab_size) const {
    return (top_k <= 0 || top_k >= vocab_size) && top_p >= 1 &&
           min_p_margin == -std::numeric_limits<float>::infinity();
  }
};

// The same fields as KeptTokens of top_k_top_p_min_p.h, for one row.
struct RowThreshold {
  float least = 0;
  int num_ties = 0;
};

class RowSampler {
 public:
  // Returns the words of memory that a sampler takes: about five per token of the vocabulary.
  static std::size_t num_words(std::size_t vocab_size);
  // REQUIRES: memory has num_words(vocab_size) words, and is aligned to 8 bytes.
  RowSampler(int vocab_size, std::span<std::int32_t> memory);

  // Sets the row that all later calls use; `logits` must outlive them. Returns 0, or the number of
  // a fault (drawn_token.h), after which no other function may be called. logits: [vocab_size]
  std::int32_t scan(std::span<const float> logits);
  std::span<const float> logits() const { return logits_; }
  float max() const { return max_; }

  int argmax() const;
  double log_sum_exp() const;
  RowThreshold threshold(float inverse_temperature, const RowFilter& filter);
  // Draws a token. fraction: a uniform number in (0, 1), times 2^62
  int draw(float inverse_temperature, const RowFilter& filter, std::int64_t fraction);

  // Computes the weights of all tokens and returns their sum. With weigh(), keep() and the
  // functions below, a caller draws in steps and adds filters of its own.
  std::int64_t weigh(float inverse_temperature);
  // Keeps the tokens that `filter` selects, computes their weights, and returns their number.
  std::size_t keep(float inverse_temperature, const RowFilter& filter);
  // Keeps the tokens whose weight, computed by weigh(), is at least `least`, a share of the
  // likeliest token's. Returns their number.
  std::size_t keep_heavy(float least);
  // Returns the kept tokens in the order of their ids; elements after the last kept token have no
  // meaning. A caller's filter may move its tokens to the front and continue with fewer.
  std::span<std::int32_t> ids() { return ids_; }
  std::span<float> values() { return values_; }    // their logits
  std::span<float> weights() { return weights_; }  // shares of the likeliest token's; [vocab_size]
  // Applies top-p to the first `size` kept tokens, and returns how many stay.
  std::size_t keep_top_p(std::size_t size, float top_p);
  // Returns the index of the drawn token among the first `size` kept ones.
  std::size_t draw_kept(std::size_t size, std::int64_t fraction) const;

  // Returns how many logits are larger than x.
  int num_greater(float x) const;
  // Returns the ids of the `count` largest logits, largest first, lower ids first among equals.
  // There are fewer if the other logits are -inf. Valid until the next call.
  std::span<const std::int32_t> likeliest(int count);

 private:
  std::int32_t vocab_size() const { return static_cast<std::int32_t>(weights_.size()); }
  // Logits taken from the row at equal distances, then sorted, the largest first.
  struct Sample {
    static constexpr std::size_t kMaxSize = 1024;

    // Returns a lower bound of the logits before place `at`, which may lie outside the sample;
    // ceiling_at() returns an upper bound of the logits after it.
    float floor_at(std::ptrdiff_t at) const {
      constexpr float kLowest = std::numeric_limits<float>::lowest();
      return at < size ? std::max(logits[std::max<std::ptrdiff_t>(at, 0)], kLowest) : kLowest;
    }
    float ceiling_at(std::ptrdiff_t at, float max) const {
      return at < 0 ? max : logits[std::min(at, size - 1)];
    }

    std::array<float, kMaxSize> logits;
    std::ptrdiff_t size = 0;
    std::ptrdiff_t place = 0;  // the threshold's estimated place
  };

  int draw_weighed(std::int64_t total, std::int64_t fraction) const;
  // Applies top-p alone to a row of which it keeps many tokens. A sample tells where to search for
  // the threshold.
  bool keep_top_p_of_row(float top_p, std::int64_t& total);
  // Samples the row. dropped: the total weight of the tokens that top-p drops
  Sample take_sample(double dropped);
  std::int64_t copy_weights(std::size_t size);
  void cut_row(const Threshold& threshold, std::size_t size, std::int64_t& total);
  bool is_top_p_alone(const RowFilter& filter) const;
  std::size_t keep_top_p_of(std::size_t size, float top_p, std::int64_t total);
  float top_p_floor(float inverse_temperature, float top_p, std::int64_t total) const;
  float top_k_floor(std::size_t k);
  std::size_t collect(float floor);
  std::size_t drop_behind(const Threshold& threshold, std::size_t size);

  std::span<const float> logits_;
  float max_ = 0;
  std::span<std::int64_t> block_sums_;  // [blocks]
  std::span<float> weights_;            // [vocab_size]; of the row, or of candidates
  std::span<float> values_;             // [vocab_size]; candidates' logits
  std::span<std::int32_t> ids_;         // [vocab_size]; candidates, ascending
  std::span<float> block_max_;          // [blocks]
  std::span<float> block_heap_;         // [blocks]; block_max_ while it is partly sorted
  ThresholdFinder threshold_finder_;
};

}  // namespace pagoda::cpu
