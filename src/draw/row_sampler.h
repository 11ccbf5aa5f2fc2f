// RowSampler: one row's filters and draw on the host, the cpu bodies of the sampling ops.
//
// Each filter first finds a floor that nothing it keeps lies below. Passes over the vocabulary are
// vectorised (row_kernels.h). So few logits are looked at one by one and nothing is sorted.
// Thread-compatible: its memory is one owner's.
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
  // Returns the words of memory that a sampler takes: about five a token of the vocabulary.
  static std::size_t num_words(std::size_t vocab_size);
  // REQUIRES: memory has num_words(vocab_size) words, and is aligned to 8 bytes.
  RowSampler(int vocab_size, std::span<std::int32_t> memory);

  // Takes the row that all later calls are about; it must stay where it is. Returns 0, or a fault's
  // number (drawn_token.h), after which nothing else may be called. logits: [vocab_size]
  std::int32_t scan(std::span<const float> logits);
  std::span<const float> logits() const { return logits_; }
  float max() const { return max_; }

  int argmax() const;
  double log_sum_exp() const;
  RowThreshold threshold(float inverse_temperature, const RowFilter& filter);
  // Draws a token. fraction: the uniform times 2^62
  int draw(float inverse_temperature, const RowFilter& filter, std::int64_t fraction);

  // Does the same in steps, for a caller with other filters. First the row's weights, all of them
  // (returned: their whole total), or those of the tokens that are kept (how many they are).
  std::int64_t weigh(float inverse_temperature);
  std::size_t keep(float inverse_temperature, const RowFilter& filter);
  // Keeps those of weigh()'s candidates that weigh at least `least`, a share of the likeliest's
  // weight, and returns their number.
  std::size_t keep_heavy(float least);
  // Returns the tokens that are kept, in the order of their ids; only the first so many count. A
  // filter may move those that stay to the front and go on with fewer.
  std::span<std::int32_t> ids() { return ids_; }
  std::span<float> values() { return values_; }    // their logits
  std::span<float> weights() { return weights_; }  // shares of the likeliest's; [vocab_size]
  // Applies top-p to the first `size` kept tokens, and returns how many stay.
  std::size_t keep_top_p(std::size_t size, float top_p);
  // Returns the index of the one that is drawn.
  std::size_t draw_kept(std::size_t size, std::int64_t fraction) const;

  // Returns how many logits are larger than x.
  int num_greater(float x) const;
  // Returns the ids of the `count` largest logits, best first, the lower id first among equals;
  // fewer where the others are -inf. Valid until the next call.
  std::span<const std::int32_t> likeliest(int count);

 private:
  std::int32_t vocab_size() const { return static_cast<std::int32_t>(weights_.size()); }
  // Logits of the row at equal distances, the largest first.
  struct Sample {
    static constexpr std::size_t kMaxSize = 1024;

    // Logits that bound those between two places; places may lie outside.
    float floor_at(std::ptrdiff_t at) const {
      constexpr float kLowest = std::numeric_limits<float>::lowest();
      return at < size ? std::max(logits[std::max<std::ptrdiff_t>(at, 0)], kLowest) : kLowest;
    }
    float ceiling_at(std::ptrdiff_t at, float max) const {
      return at < 0 ? max : logits[std::min(at, size - 1)];
    }

    std::array<float, kMaxSize> logits;
    std::ptrdiff_t size = 0;
    std::ptrdiff_t place = 0;  // where the threshold should be
  };

  int draw_weighed(std::int64_t total, std::int64_t fraction) const;
  // Applies top-p alone to a row of which it keeps much: the threshold is guessed from a sample.
  bool keep_top_p_of_row(float top_p, std::int64_t& total);
  // Takes a sample of the row. dropped: the whole weight of what top-p drops
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
