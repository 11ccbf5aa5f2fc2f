#include "draw/row_sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "core/check.h"
#include "draw/drawn_token.h"
#include "draw/row_kernels.h"
#include "draw/token_weight.h"

namespace pagoda::cpu {
namespace {

constexpr float kLowest = std::numeric_limits<float>::lowest();
constexpr std::size_t kWordBytes = 4;
constexpr std::size_t kWordsOfALine = 16;
// With more candidates than this, passes over the row are faster than a look at each candidate:
// 0.25 ms instead of 1 ms for a flat row of 151,936 logits.
constexpr std::size_t kManyCandidates = 8192;
// The threshold is first searched for among this many places of the sample on either side of the
// estimate, a sixteenth of the row. If it is not there, the next kMostMargin places are searched.
constexpr std::ptrdiff_t kSampleMargin = 32;
constexpr std::ptrdiff_t kMostMargin = 128;

constexpr std::size_t padded(std::size_t num_words) {
  return (num_words + kWordsOfALine - 1) / kWordsOfALine * kWordsOfALine;
}

// Takes `count` values of T from the front of `memory`, and shortens `memory` by them.
template <typename T>
std::span<T> take(std::span<std::int32_t>& memory, std::size_t count) {
  const std::size_t num_words = padded(count * sizeof(T) / kWordBytes);
  auto* first = reinterpret_cast<T*>(memory.data());
  memory = memory.subspan(num_words);
  return {first, count};
}

}  // namespace

std::size_t RowSampler::num_words(std::size_t vocab_size) {
  const std::size_t num_blocks = num_row_blocks(vocab_size);
  return 3 * padded(vocab_size) + 2 * padded(vocab_size + kStoreSlack) + 2 * padded(num_blocks) +
         padded(2 * num_blocks);
}

RowSampler::RowSampler(int vocab_size, std::span<std::int32_t> memory)
    : block_sums_(take<std::int64_t>(memory, num_row_blocks(vocab_size))),
      weights_(take<float>(memory, vocab_size)),
      values_(take<float>(memory, vocab_size + kStoreSlack)),
      ids_(take<std::int32_t>(memory, vocab_size + kStoreSlack)),
      block_max_(take<float>(memory, num_row_blocks(vocab_size))),
      block_heap_(take<float>(memory, num_row_blocks(vocab_size))),
      threshold_finder_(take<std::uint32_t>(memory, vocab_size),
                        take<std::uint32_t>(memory, vocab_size)) {}

std::int32_t RowSampler::scan(std::span<const float> logits) {
  PAGODA_CHECK(static_cast<std::int32_t>(logits.size()) == vocab_size(),
               fmt::format("[sampler] expected {} logits, got {}", vocab_size(), logits.size()));
  logits_ = logits;
  const RowScan scan = scan_row(logits, block_max_);
  max_ = scan.max;
  return fault_of(scan);
}

int RowSampler::argmax() const {
  return first_of_largest(logits_, block_max_, max_);
}

double RowSampler::log_sum_exp() const {
  return max_ + std::log(sum_exp(logits_, max_));
}

RowThreshold RowSampler::threshold(float inverse_temperature, const RowFilter& filter) {
  const std::size_t size = keep(inverse_temperature, filter);
  const std::span<const float> kept = values_.first(size);
  const float least = *std::min_element(kept.begin(), kept.end());
  return {.least = least,
          .num_ties = static_cast<int>(std::count(kept.begin(), kept.end(), least))};
}

int RowSampler::draw(float inverse_temperature, const RowFilter& filter, std::int64_t fraction) {
  if (filter.keeps_all(vocab_size())) return draw_weighed(weigh(inverse_temperature), fraction);
  if (!is_top_p_alone(filter)) return ids_[draw_kept(keep(inverse_temperature, filter), fraction)];
  std::int64_t total = weigh(inverse_temperature);
  const float floor = top_p_floor(inverse_temperature, filter.top_p, total);
  std::size_t size = collect(floor);
  if (size > kManyCandidates) {
    if (keep_top_p_of_row(filter.top_p, total)) return draw_weighed(total, fraction);
    size = collect(floor);
  }
  weigh_row(values_.first(size), max_, inverse_temperature, weights_, block_sums_);
  return ids_[draw_kept(keep_top_p_of(size, filter.top_p, total), fraction)];
}

std::int64_t RowSampler::weigh(float inverse_temperature) {
  return weigh_row(logits_, max_, inverse_temperature, weights_, block_sums_);
}

// Draws a token from the weights of the whole row, whose sum is `total`, which is positive.
int RowSampler::draw_weighed(std::int64_t total, std::int64_t fraction) const {
  std::int64_t left = share_of(total, fraction);
  std::size_t block = 0;
  while (block_sums_[block] <= left) left -= block_sums_[block++];
  for (std::size_t id = block * kRowBlock;; ++id) {
    left -= whole_weight(weights_[id]);
    if (left < 0) return static_cast<int>(id);
  }
}

std::size_t RowSampler::draw_kept(std::size_t size, std::int64_t fraction) const {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < size; ++i) total += whole_weight(weights_[i]);
  std::int64_t left = share_of(total, fraction);
  std::size_t i = 0;
  while (i + 1 < size && (left -= whole_weight(weights_[i])) >= 0) ++i;
  return i;
}

std::size_t RowSampler::keep_heavy(float least) {
  const std::int64_t least_sum = whole_weight(least);
  std::size_t size = 0;
  for (std::size_t block = 0; block < block_sums_.size(); ++block) {
    if (block_sums_[block] < least_sum) continue;
    const std::size_t end = std::min((block + 1) * kRowBlock, logits_.size());
    for (std::size_t id = block * kRowBlock; id < end; ++id) {
      const float weight = weights_[id];
      ids_[size] = static_cast<std::int32_t>(id);
      values_[size] = logits_[id];
      weights_[size] = weight;
      size += weight >= least && weight > 0;
    }
  }
  return size;
}

bool RowSampler::is_top_p_alone(const RowFilter& filter) const {
  RowFilter others = filter;
  others.top_p = 1;
  return filter.top_p < 1 && others.keeps_all(vocab_size());
}

// Leaves in ids_, values_ and weights_ the tokens that min-p, top-k and top-p keep. Returns their
// number.
std::size_t RowSampler::keep(float inverse_temperature, const RowFilter& filter) {
  const bool has_top_k = filter.top_k > 0 && filter.top_k < vocab_size();
  const bool top_p_alone = is_top_p_alone(filter);
  float floor = std::max(max_ + filter.min_p_margin, kLowest);
  if (has_top_k) floor = std::max(floor, top_k_floor(filter.top_k));
  std::int64_t total = 0;
  if (top_p_alone) {
    total = weigh(inverse_temperature);
    floor = top_p_floor(inverse_temperature, filter.top_p, total);
  }
  std::size_t size = collect(floor);
  if (has_top_k && size > static_cast<std::size_t>(filter.top_k)) {
    Threshold threshold = threshold_finder_.by_count(values_.first(size), filter.top_k);
    threshold.num_ties = vocab_size();
    size = drop_behind(threshold, size);
  }
  const std::int64_t left =
      weigh_row(values_.first(size), max_, inverse_temperature, weights_, block_sums_);
  return keep_top_p_of(size, filter.top_p, top_p_alone ? total : left);
}

// Sets the weights of the tokens that top-p drops to 0, and `total` to the sum of the others.
// Returns false, and leaves both as they are, if the threshold is not near the sample's estimate.
bool RowSampler::keep_top_p_of_row(float top_p, std::int64_t& total) {
  const std::int64_t target = std::max<std::int64_t>(1, share_of(total, fraction_of(top_p)));
  const Sample sample = take_sample(static_cast<double>(total - target));
  std::ptrdiff_t first = sample.place - kSampleMargin;
  std::ptrdiff_t last = sample.place + kSampleMargin;
  for (std::ptrdiff_t margin = kSampleMargin; margin <= kMostMargin; margin *= 4) {
    std::int64_t above = 0;
    const std::size_t size = collect_between(logits_, weights_, sample.floor_at(last),
                                             sample.ceiling_at(first, max_), ids_, values_, above);
    if (2 * size > weights_.size()) return false;
    const std::int64_t between = copy_weights(size);
    if (above < target && target <= above + between) {
      const std::span<const float> values = values_.first(size);
      cut_row(threshold_finder_.by_weight(values, values_.subspan(size, size), target - above),
              size, total);
      return true;
    }
    if (target <= above) {
      last = first;
      first -= 4 * margin;
    } else {
      first = last;
      last += 4 * margin;
    }
  }
  return false;
}

// Copies the weights of the first `size` collected tokens to the place after their values. Returns
// their sum.
std::int64_t RowSampler::copy_weights(std::size_t size) {
  const std::span<float> weights = values_.subspan(size, size);
  std::int64_t total = 0;
  for (std::size_t i = 0; i < size; ++i) {
    weights[i] = weights_[ids_[i]];
    total += whole_weight(weights[i]);
  }
  return total;
}

// Sets the weights of the row's tokens beyond the threshold to 0. The tokens that tie at it must be
// among the first `size` collected ones.
void RowSampler::cut_row(const Threshold& threshold, std::size_t size, std::int64_t& total) {
  total = drop_below(logits_, threshold.value(), weights_, block_sums_);
  int num_ties = 0;
  for (std::size_t i = 0; i < size; ++i) {
    if (ordered_bits(values_[i]) != threshold.key || ++num_ties <= threshold.num_ties) continue;
    const std::int64_t weight = whole_weight(weights_[ids_[i]]);
    block_sums_[ids_[i] / kRowBlock] -= weight;
    total -= weight;
    weights_[ids_[i]] = 0;
  }
}

// Samples the row's logits and weights. The estimate uses the dropped weight, which many small
// tokens share: a sample estimates it far better than the weight of the few large tokens that are
// kept.
RowSampler::Sample RowSampler::take_sample(double dropped) {
  struct Token {
    float logit;
    float weight;
  };
  std::array<Token, Sample::kMaxSize> tokens;
  const std::size_t stride = std::max<std::size_t>(1, weights_.size() / Sample::kMaxSize);
  Sample sample;
  sample.size = static_cast<std::ptrdiff_t>(std::min(Sample::kMaxSize, weights_.size()));
  for (std::ptrdiff_t i = 0; i < sample.size; ++i)
    tokens[i] = {.logit = logits_[i * stride], .weight = weights_[i * stride]};
  std::sort(tokens.begin(), tokens.begin() + sample.size,
            [](const Token& a, const Token& b) { return a.logit > b.logit; });
  for (std::ptrdiff_t i = 0; i < sample.size; ++i) sample.logits[i] = tokens[i].logit;
  const double of_sample = dropped / double{ExpConstants::kWeightOfTheLikeliest} *
                           static_cast<double>(sample.size) / static_cast<double>(weights_.size());
  sample.place = sample.size - 1;
  double below = 0;
  while (sample.place > 0 && below < of_sample) below += tokens[sample.place--].weight;
  return sample;
}

std::size_t RowSampler::keep_top_p(std::size_t size, float top_p) {
  std::int64_t total = 0;
  for (std::size_t i = 0; i < size; ++i) total += whole_weight(weights_[i]);
  return keep_top_p_of(size, top_p, total);
}

std::size_t RowSampler::keep_top_p_of(std::size_t size, float top_p, std::int64_t total) {
  if (top_p >= 1) return size;
  const std::int64_t target = std::max<std::int64_t>(1, share_of(total, fraction_of(top_p)));
  return drop_behind(threshold_finder_.by_weight(values_.first(size), weights_.first(size), target),
                     size);
}

// Returns a floor for top-p, the weight (1 - p) * total / vocab_size. All tokens below it together
// weigh less than (1 - p) * total, so top-p drops them.
float RowSampler::top_p_floor(float inverse_temperature, float top_p, std::int64_t total) const {
  // The factor 0.999 allows for float32's rounding, the 1 for the rounding of a whole weight.
  const double share = 0.999 * (1 - double{top_p}) * static_cast<double>(total) / vocab_size() - 1;
  if (!(share > 0)) return kLowest;
  const double distance =
      std::log(share / double{ExpConstants::kWeightOfTheLikeliest}) / inverse_temperature;
  const auto floor = static_cast<float>(std::max(max_ + distance, double{kLowest}));
  return std::max(std::nextafter(floor, kLowest), kLowest);
}

// Returns the k-th largest of the block maxima: at least k logits are as large. With fewer than k
// blocks it returns the lowest float32, which excludes nothing.
float RowSampler::top_k_floor(std::size_t k) {
  if (k > block_max_.size()) return kLowest;
  std::copy(block_max_.begin(), block_max_.end(), block_heap_.begin());
  const auto kth = block_heap_.begin() + static_cast<std::ptrdiff_t>(k - 1);
  std::nth_element(block_heap_.begin(), kth, block_heap_.end(), std::greater<>());
  return *kth;
}

// Collects into ids_ and values_ the logits from `floor` up, except -inf, in the order of their
// ids.
std::size_t RowSampler::collect(float floor) {
  return collect_row(logits_, block_max_, std::max(floor, kLowest), ids_, values_);
}

// Drops the candidates below the threshold. Of those equal to it the first num_ties stay.
std::size_t RowSampler::drop_behind(const Threshold& threshold, std::size_t size) {
  std::size_t kept = 0;
  int num_ties = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t key = ordered_bits(values_[i]);
    ids_[kept] = ids_[i];
    values_[kept] = values_[i];
    weights_[kept] = weights_[i];
    num_ties += key == threshold.key;
    kept += key > threshold.key || (key == threshold.key && num_ties <= threshold.num_ties);
  }
  return kept;
}

int RowSampler::num_greater(float x) const {
  int count = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (block_max_[block] <= x) continue;
    const std::size_t end = std::min((block + 1) * kRowBlock, logits_.size());
    for (std::size_t id = block * kRowBlock; id < end; ++id) count += logits_[id] > x;
  }
  return count;
}

std::span<const std::int32_t> RowSampler::likeliest(int count) {
  const std::size_t size = collect(top_k_floor(count));
  const auto begin = ids_.begin();
  const auto num_wanted = static_cast<std::ptrdiff_t>(std::min<std::size_t>(size, count));
  std::partial_sort(begin, begin + num_wanted, begin + static_cast<std::ptrdiff_t>(size),
                    [this](std::int32_t a, std::int32_t b) {
                      return logits_[a] != logits_[b] ? logits_[a] > logits_[b] : a < b;
                    });
  return ids_.first(num_wanted);
}

}  // namespace pagoda::cpu
