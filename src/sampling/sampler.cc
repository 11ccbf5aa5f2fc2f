#include "sampling/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <utility>
#include <vector>

#include "core/check.h"
#include "sampling/cutoff.h"
#include "sampling/dynamic_temperature.h"
#include "sampling/rng.h"
#include "sampling/row_kernels.h"
#include "sampling/token_rules.h"
#include "sampling/typical.h"
#include "sampling/xtc.h"

namespace pagoda {
namespace {

// vLLM's _SAMPLING_EPS.
constexpr float kGreedyTemperature = 1e-5f;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

// max + distance as a float32 that is no infinity: a floor that lets every finite logit through at
// worst.
float floor_below(float max, double distance) {
  return static_cast<float>(std::max(max + distance, double{std::numeric_limits<float>::lowest()}));
}

LogitsContext context_of(const RowSampling& row) {
  return {.params = *row.params, .tokens = row.tokens, .num_prompt_tokens = row.num_prompt_tokens};
}

// XTC's coin is a draw of its own, so that the token's does not depend on it.
bool throws_xtc(const RowSampling& row) {
  return row.params->xtc_probability > 0 &&
         random_uniform({.seed = row.seed,
                         .sample_index = row.sample_index,
                         .position = row.position,
                         .purpose = RandomPurpose::kXtcCoin}) < row.params->xtc_probability;
}

}  // namespace

bool is_greedy(const SamplingParams& params) {
  return params.temperature < kGreedyTemperature;
}

class Sampler::Impl {
 public:
  Impl(int vocab_size, std::vector<std::shared_ptr<const LogitsProcessor>> processors);

  Result<SampledToken> sample(const RowSampling& row);
  Result<TokenLogprobs> score(std::span<const float> logits, int token_id, int num_top);
  int vocab_size() const { return vocab_size_; }

 private:
  struct Kept {
    std::size_t size = 0;
    double total_weight = 0;
  };

  // Fills block_max_; the row's largest logit, or why it can't be sampled.
  Result<float> scan(std::span<const float> logits);
  bool changes_logits(const RowSampling& row) const;
  std::span<const float> changed_logits(const RowSampling& row);

  int argmax(std::span<const float> logits, float max) const;
  int draw(const RowSampling& row, std::span<const float> logits, float max);
  int draw_from_row(std::span<const float> logits, float max, float inverse_temperature,
                    double uniform);
  int draw_from_candidates(const Kept& kept, double uniform) const;

  float temperature_of(const SamplingParams& params, std::span<const float> logits, float max);
  Kept find_candidates(const RowSampling& row, std::span<const float> logits, float max,
                       float temperature);
  int draw_mirostat(const RowSampling& row, std::span<const float> logits, float max,
                    double uniform);
  Candidates candidates(std::size_t size);
  std::size_t collect(std::span<const float> logits, float floor);
  std::size_t keep(std::size_t size, const Cutoff& cutoff);
  float top_k_floor(std::size_t k);

  TokenLogprobs logprobs_of(std::span<const float> logits, float max, int token_id, int num_top);
  void fill_top(std::span<const float> logits, double log_sum_exp, int num_top,
                std::vector<TokenLogprob>& top);
  int num_greater(std::span<const float> logits, float x) const;

  int vocab_size_;
  std::vector<std::shared_ptr<const LogitsProcessor>> processors_;
  CutoffFinder cutoff_finder_;
  TypicalFilter typical_filter_;
  std::vector<float> logits_;       // [vocab_size]; a row after bans and penalties
  std::vector<float> weights_;      // [vocab_size]; of a row, or of candidates
  std::vector<float> values_;       // [vocab_size]; candidates' logits
  std::vector<int> ids_;            // [vocab_size]; candidates, ascending
  std::vector<float> block_max_;    // [blocks]
  std::vector<float> block_heap_;   // [blocks]; block_max_ while it is partly sorted
  std::vector<double> block_sums_;  // [blocks]
};

Sampler::Impl::Impl(int vocab_size, std::vector<std::shared_ptr<const LogitsProcessor>> processors)
    : vocab_size_(vocab_size),
      processors_(std::move(processors)),
      cutoff_finder_(vocab_size),
      typical_filter_(vocab_size) {
  PAGODA_CHECK(vocab_size > 0, fmt::format("[sampler] expected a vocabulary, got {}", vocab_size));
  const std::size_t num_blocks = num_row_blocks(vocab_size);
  logits_.resize(vocab_size);
  weights_.resize(vocab_size);
  values_.resize(vocab_size);
  ids_.resize(vocab_size);
  block_max_.resize(num_blocks);
  block_heap_.resize(num_blocks);
  block_sums_.resize(num_blocks);
}

Result<float> Sampler::Impl::scan(std::span<const float> logits) {
  PAGODA_CHECK(static_cast<int>(logits.size()) == vocab_size_,
               fmt::format("[sampler] expected {} logits, got {}", vocab_size_, logits.size()));
  const RowScan scan = scan_row(logits, block_max_);
  if (!scan.valid) return invalid_argument("[sampler] logits: expected numbers, got NaN or +inf");
  if (scan.max == kMinusInfinity) {
    return invalid_argument("[sampler] logits: expected a token to choose, got -inf for all {}",
                            vocab_size_);
  }
  return scan.max;
}

bool Sampler::Impl::changes_logits(const RowSampling& row) const {
  const LogitsContext context = context_of(row);
  return row.bans_stop_tokens || !row.mask.empty() || row.params->token_rules || penalises(*row.params) ||
         std::any_of(processors_.begin(), processors_.end(),
                     [&](const auto& processor) { return processor->acts_on(context); });
}

std::span<const float> Sampler::Impl::changed_logits(const RowSampling& row) {
  std::copy(row.logits.begin(), row.logits.end(), logits_.begin());
  const TokenRules* const rules = row.params->token_rules.get();
  if (rules != nullptr) add_logit_bias(*rules, logits_);
  const LogitsContext context = context_of(row);
  for (const auto& processor : processors_) {
    if (processor->acts_on(context)) processor->process(context, logits_);
  }
  if (rules != nullptr) ban_tokens(*rules, row.tokens.subspan(row.num_prompt_tokens), logits_);
  if (row.bans_stop_tokens) {
    const auto ban = [this](std::span<const int> ids) {
      for (const int id : ids) {
        if (0 <= id && id < vocab_size_) logits_[id] = kMinusInfinity;
      }
    };
    ban(row.eos_token_ids);
    ban(row.params->stop_token_ids);
  }
  if (!row.mask.empty()) ban_unset(row.mask, logits_);
  if (penalises(*row.params)) {
    PAGODA_CHECK(row.state != nullptr, "[sampler] a penalty needs the sequence's state");
    apply_penalties(*row.params, row.state->entries(), logits_);
    if (DryState* dry = row.state->dry()) dry->apply(*row.params, row.state->entries(), logits_);
  }
  return logits_;
}

Result<SampledToken> Sampler::Impl::sample(const RowSampling& row) {
  PAGODA_ASSIGN_OR_RETURN(float max, scan(row.logits));
  std::span<const float> logits = row.logits;
  const float raw_max = max;
  const bool changed = changes_logits(row);
  if (changed) {
    logits = changed_logits(row);
    PAGODA_ASSIGN_OR_RETURN(max, scan(logits));
  }
  SampledToken token;
  token.token_id = is_greedy(*row.params) ? argmax(logits, max) : draw(row, logits, max);
  if (row.params->logprobs) {
    if (changed) scan_row(row.logits, block_max_);
    token.logprobs = logprobs_of(row.logits, raw_max, token.token_id, *row.params->logprobs);
  }
  return token;
}

Result<TokenLogprobs> Sampler::Impl::score(std::span<const float> logits, int token_id,
                                           int num_top) {
  PAGODA_CHECK(0 <= token_id && token_id < vocab_size_,
               fmt::format("[sampler] expected a token of [0, {}), got {}", vocab_size_, token_id));
  PAGODA_ASSIGN_OR_RETURN(const float max, scan(logits));
  return logprobs_of(logits, max, token_id, num_top);
}

int Sampler::Impl::argmax(std::span<const float> logits, float max) const {
  const auto block = std::find(block_max_.begin(), block_max_.end(), max) - block_max_.begin();
  return static_cast<int>(std::find(logits.begin() + block * kRowBlock, logits.end(), max) -
                          logits.begin());
}

int Sampler::Impl::draw(const RowSampling& row, std::span<const float> logits, float max) {
  const SamplingParams& params = *row.params;
  const float temperature = temperature_of(params, logits, max);
  if (temperature < kGreedyTemperature) return argmax(logits, max);
  const double uniform = random_uniform(
      {.seed = row.seed, .sample_index = row.sample_index, .position = row.position});
  if (params.mirostat == 2) {
    weigh_row(logits, max, 1.0f / temperature, weights_, block_sums_);
    return draw_mirostat(row, logits, max, uniform);
  }
  const bool filters = params.min_p > 0 || params.top_p < 1 || params.typical_p < 1 ||
                       params.xtc_probability > 0 ||
                       (params.top_k > 0 && params.top_k < vocab_size_);
  if (!filters) return draw_from_row(logits, max, 1.0f / temperature, uniform);
  return draw_from_candidates(find_candidates(row, logits, max, temperature), uniform);
}

float Sampler::Impl::temperature_of(const SamplingParams& params, std::span<const float> logits,
                                    float max) {
  if (params.dynatemp_range <= 0) return params.temperature;
  const double total = weigh_row(logits, max, 1.0f, weights_, block_sums_);
  return dynamic_temperature(params, logits, max, weights_, total);
}

// weights_ and block_sums_ are the row's.
int Sampler::Impl::draw_mirostat(const RowSampling& row, std::span<const float> logits, float max,
                                 double uniform) {
  PAGODA_CHECK(row.state != nullptr && row.state->mirostat() != nullptr,
               "[sampler] mirostat needs the sequence's state");
  MirostatState& mirostat = *row.state->mirostat();
  const double total = std::accumulate(block_sums_.begin(), block_sums_.end(), 0.0);
  const double least = total * std::exp2(-double{mirostat.mu()});
  Kept kept;
  for (std::size_t block = 0; block < block_sums_.size(); ++block) {
    if (block_sums_[block] < least) continue;
    const std::size_t end = std::min((block + 1) * kRowBlock, logits.size());
    for (std::size_t id = block * kRowBlock; id < end; ++id) {
      if (weights_[id] < least) continue;
      ids_[kept.size] = static_cast<int>(id);
      weights_[kept.size++] = weights_[id];
      kept.total_weight += weights_[id];
    }
  }
  if (kept.size == 0) {
    mirostat.record(*row.params, 0);
    return argmax(logits, max);
  }
  const int token_id = draw_from_candidates(kept, uniform);
  const auto place = std::lower_bound(ids_.begin(), ids_.begin() + kept.size, token_id);
  mirostat.record(*row.params, std::log2(kept.total_weight / weights_[place - ids_.begin()]));
  return token_id;
}

int Sampler::Impl::draw_from_row(std::span<const float> logits, float max,
                                 float inverse_temperature, double uniform) {
  const double target =
      uniform * weigh_row(logits, max, inverse_temperature, weights_, block_sums_);
  const std::size_t num_blocks = block_sums_.size();
  std::size_t block = 0;
  double reached = 0;
  while (block + 1 < num_blocks && reached + block_sums_[block] <= target) {
    reached += block_sums_[block++];
  }
  // Rounding may leave the target at a block's very end: the last token that weighs anything takes
  // it.
  int token_id = argmax(logits, max);
  const std::size_t end = std::min((block + 1) * kRowBlock, logits.size());
  for (std::size_t id = block * kRowBlock; id < end; ++id) {
    if (weights_[id] == 0) continue;
    token_id = static_cast<int>(id);
    reached += weights_[id];
    if (reached > target) break;
  }
  return token_id;
}

int Sampler::Impl::draw_from_candidates(const Kept& kept, double uniform) const {
  const double target = uniform * kept.total_weight;
  double reached = 0;
  int token_id = ids_[0];
  for (std::size_t i = 0; i < kept.size; ++i) {
    if (weights_[i] == 0) continue;
    token_id = ids_[i];
    reached += weights_[i];
    if (reached > target) break;
  }
  return token_id;
}

Candidates Sampler::Impl::candidates(std::size_t size) {
  return {{ids_.data(), size}, {values_.data(), size}, {weights_.data(), size}};
}

// Leaves in ids_, values_ and weights_ what the filters keep. Each filter first finds a
// floor that nothing it keeps lies below, so that few logits are looked at one by one.
Sampler::Impl::Kept Sampler::Impl::find_candidates(const RowSampling& row,
                                                   std::span<const float> logits, float max,
                                                   float temperature) {
  const SamplingParams& params = *row.params;
  const float inverse_temperature = 1.0f / temperature;
  const bool has_top_k = params.top_k > 0 && params.top_k < vocab_size_;
  const bool top_p_first =
      params.min_p <= 0 && !has_top_k && params.typical_p >= 1 && params.top_p < 1;
  float floor = std::numeric_limits<float>::lowest();
  if (params.min_p > 0) {
    floor = floor_below(max, std::log(double{params.min_p}) * temperature);
  }
  if (has_top_k) floor = std::max(floor, top_k_floor(params.top_k));
  Kept found;
  if (top_p_first) {
    // Tokens that weigh less than a vocabulary's share of 1 - p are, all together, less than 1 - p.
    found.total_weight = weigh_row(logits, max, inverse_temperature, weights_, block_sums_);
    const double share = 0.999 * (1 - double{params.top_p}) * found.total_weight / vocab_size_;
    floor = floor_below(max, std::log(share) * temperature);
  }
  found.size = collect(logits, floor);
  const auto values = [&] { return std::span<const float>(values_.data(), found.size); };
  if (has_top_k && found.size > static_cast<std::size_t>(params.top_k)) {
    Cutoff cutoff = cutoff_finder_.by_count(values(), params.top_k);
    cutoff.num_ties = vocab_size_;
    found.size = keep(found.size, cutoff);
  }
  const double total = weigh_row(values(), max, inverse_temperature, weights_, block_sums_);
  if (!top_p_first) found.total_weight = total;
  if (params.typical_p < 1) {
    found.size = typical_filter_.keep(candidates(found.size), temperature, params.typical_p);
    found.total_weight = total_weight(candidates(found.size));
  }
  if (params.top_p < 1) {
    const std::span<const float> weights(weights_.data(), found.size);
    const Cutoff cutoff =
        cutoff_finder_.by_weight(values(), weights, params.top_p * found.total_weight);
    found.size = keep(found.size, cutoff);
  }
  if (throws_xtc(row))
    found.size = exclude_top_choices(candidates(found.size), params.xtc_threshold);
  found.total_weight = total_weight(candidates(found.size));
  return found;
}

// Of the blocks' largest logits the k-th: at least k logits are as large. No floor where there are
// fewer blocks.
float Sampler::Impl::top_k_floor(std::size_t k) {
  if (k > block_max_.size()) return std::numeric_limits<float>::lowest();
  std::copy(block_max_.begin(), block_max_.end(), block_heap_.begin());
  const auto kth = block_heap_.begin() + (k - 1);
  std::nth_element(block_heap_.begin(), kth, block_heap_.end(), std::greater<>());
  return *kth;
}

// Into ids_ and values_: the logits from `floor` up, -inf never, in the order of their ids.
std::size_t Sampler::Impl::collect(std::span<const float> logits, float floor) {
  const float least = std::max(floor, std::numeric_limits<float>::lowest());
  std::size_t size = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (block_max_[block] < least) continue;
    const std::size_t end = std::min((block + 1) * kRowBlock, logits.size());
    for (std::size_t id = block * kRowBlock; id < end; ++id) {
      ids_[size] = static_cast<int>(id);
      values_[size] = logits[id];
      size += logits[id] >= least;
    }
  }
  return size;
}

// Drops the candidates beyond the cutoff; of those that tie at it, the first ones stay.
std::size_t Sampler::Impl::keep(std::size_t size, const Cutoff& cutoff) {
  std::size_t kept = 0;
  int num_ties = 0;
  for (std::size_t i = 0; i < size; ++i) {
    const std::uint32_t key = ordered_bits(values_[i]);
    ids_[kept] = ids_[i];
    values_[kept] = values_[i];
    weights_[kept] = weights_[i];
    num_ties += key == cutoff.key;
    kept += key > cutoff.key || (key == cutoff.key && num_ties <= cutoff.num_ties);
  }
  return kept;
}

TokenLogprobs Sampler::Impl::logprobs_of(std::span<const float> logits, float max, int token_id,
                                         int num_top) {
  const double log_sum_exp = max + std::log(sum_exp(logits, max));
  TokenLogprobs result;
  const float logit = logits[token_id];
  result.chosen = {.token_id = token_id, .logprob = static_cast<float>(logit - log_sum_exp)};
  result.rank = 1 + num_greater(logits, logit);
  if (num_top > 0) fill_top(logits, log_sum_exp, num_top, result.top);
  return result;
}

void Sampler::Impl::fill_top(std::span<const float> logits, double log_sum_exp, int num_top,
                             std::vector<TokenLogprob>& top) {
  const std::size_t size = collect(logits, top_k_floor(num_top));
  const auto begin = ids_.begin();
  const auto end = begin + std::min<std::size_t>(size, num_top);
  std::partial_sort(begin, end, begin + size, [logits](int a, int b) {
    return logits[a] != logits[b] ? logits[a] > logits[b] : a < b;
  });
  top.reserve(end - begin);
  for (auto it = begin; it != end; ++it) {
    top.push_back({.token_id = *it, .logprob = static_cast<float>(logits[*it] - log_sum_exp)});
  }
}

int Sampler::Impl::num_greater(std::span<const float> logits, float x) const {
  int count = 0;
  for (std::size_t block = 0; block < block_max_.size(); ++block) {
    if (block_max_[block] <= x) continue;
    const std::size_t end = std::min((block + 1) * kRowBlock, logits.size());
    for (std::size_t id = block * kRowBlock; id < end; ++id) count += logits[id] > x;
  }
  return count;
}

Sampler::Sampler(int vocab_size, std::vector<std::shared_ptr<const LogitsProcessor>> processors)
    : impl_(std::make_unique<Impl>(vocab_size, std::move(processors))) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

Result<SampledToken> Sampler::sample(const RowSampling& row) {
  return impl_->sample(row);
}

Result<TokenLogprobs> Sampler::score(std::span<const float> logits, int token_id, int num_top) {
  return impl_->score(logits, token_id, num_top);
}

int Sampler::vocab_size() const {
  return impl_->vocab_size();
}

}  // namespace pagoda
