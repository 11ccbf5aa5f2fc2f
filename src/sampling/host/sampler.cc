#include "sampling/host/sampler.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "core/check.h"
#include "draw/drawn_token.h"
#include "draw/rng.h"
#include "draw/row_sampler.h"
#include "draw/token_weight.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"
#include "sampling/host/candidates.h"
#include "sampling/host/dynamic_temperature.h"
#include "sampling/host/typical.h"
#include "sampling/host/xtc.h"
#include "sampling/token_rules.h"

namespace pagoda {
namespace {

// vLLM's _SAMPLING_EPS.
constexpr float kGreedyTemperature = 1e-5f;
constexpr float kMinusInfinity = -std::numeric_limits<float>::infinity();

LogitsContext context_of(const RowSampling& row) {
  return {.params = *row.params, .tokens = row.tokens, .num_prompt_tokens = row.num_prompt_tokens};
}

// Returns whether XTC applies to the row. Its coin has a random number of its own, so the number
// for the token's draw is the same with and without XTC.
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

  Result<int> sample(const RowSampling& row);

 private:
  // Scans the logits; returns an error if no token can be sampled from them.
  Status scan(std::span<const float> logits);
  bool changes_logits(const RowSampling& row) const;
  std::span<const float> changed_logits(const RowSampling& row);

  int draw(const RowSampling& row);
  int draw_filtered(const RowSampling& row, float temperature, std::int64_t fraction);
  int draw_mirostat(const RowSampling& row, float temperature, std::int64_t fraction);
  std::size_t keep_likeliest(float temperature, float mu);
  std::size_t keep_unsurprising(float temperature, float mu);
  float temperature_of(const SamplingParams& params);
  Candidates candidates(std::size_t size);

  int vocab_size_;
  std::vector<std::shared_ptr<const LogitsProcessor>> processors_;
  TypicalFilter typical_filter_;
  // These are not initialised, so that the system gives a sampler no memory before it is used.
  std::unique_ptr<float[]> logits_memory_;
  std::unique_ptr<std::int32_t[]> memory_;  // row_'s
  std::span<float> logits_;                 // [vocab_size]; a row after bans and penalties
  cpu::RowSampler row_;                     // the row that was scanned last
};

Sampler::Impl::Impl(int vocab_size, std::vector<std::shared_ptr<const LogitsProcessor>> processors)
    : vocab_size_(vocab_size),
      processors_(std::move(processors)),
      typical_filter_(vocab_size),
      logits_memory_(std::make_unique_for_overwrite<float[]>(vocab_size)),
      memory_(
          std::make_unique_for_overwrite<std::int32_t[]>(cpu::RowSampler::num_words(vocab_size))),
      logits_(logits_memory_.get(), vocab_size),
      row_(vocab_size, {memory_.get(), cpu::RowSampler::num_words(vocab_size)}) {
  PAGODA_CHECK(0 < vocab_size && vocab_size <= kMaxWeighedTokens,
               fmt::format("[sampler] expected a vocabulary of 1 to {}, got {}", kMaxWeighedTokens,
                           vocab_size));
}

Status Sampler::Impl::scan(std::span<const float> logits) {
  return status_of_drawn(row_.scan(logits), vocab_size_);
}

bool Sampler::Impl::changes_logits(const RowSampling& row) const {
  const LogitsContext context = context_of(row);
  return row.bans_stop_tokens || !row.mask.empty() || row.params->token_rules ||
         penalises(*row.params) ||
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
    penalise_logits(*row.params, row.state->entries(), logits_);
    if (DryState* dry = row.state->dry()) dry->apply(*row.params, row.state->entries(), logits_);
  }
  return logits_;
}

Result<int> Sampler::Impl::sample(const RowSampling& row) {
  PAGODA_RETURN_IF_ERROR(scan(row.logits));
  if (changes_logits(row)) PAGODA_RETURN_IF_ERROR(scan(changed_logits(row)));
  return is_greedy(*row.params) ? row_.argmax() : draw(row);
}

int Sampler::Impl::draw(const RowSampling& row) {
  const SamplingParams& params = *row.params;
  const float temperature = temperature_of(params);
  if (temperature < kGreedyTemperature) return row_.argmax();
  const std::int64_t fraction = fraction_of_uniform(random_uniform(
      {.seed = row.seed, .sample_index = row.sample_index, .position = row.position}));
  if (params.mirostat != 0) return draw_mirostat(row, temperature, fraction);
  if (params.typical_p < 1 || params.xtc_probability > 0)
    return draw_filtered(row, temperature, fraction);
  return row_.draw(1.0f / temperature,
                   {.top_k = params.top_k,
                    .top_p = params.top_p,
                    .min_p_margin = min_p_margin(params.min_p, temperature)},
                   fraction);
}

float Sampler::Impl::temperature_of(const SamplingParams& params) {
  if (params.dynatemp_range <= 0) return params.temperature;
  const double total =
      static_cast<double>(row_.weigh(1.0f)) / double{ExpConstants::kWeightOfTheLikeliest};
  return dynamic_temperature(params, row_.logits(), row_.max(), row_.weights(), total);
}

int Sampler::Impl::draw_mirostat(const RowSampling& row, float temperature, std::int64_t fraction) {
  PAGODA_CHECK(row.state != nullptr && row.state->mirostat() != nullptr,
               "[sampler] mirostat needs the sequence's state");
  MirostatState& mirostat = *row.state->mirostat();
  const std::size_t size = row.params->mirostat == 1
                               ? keep_likeliest(temperature, mirostat.mu())
                               : keep_unsurprising(temperature, mirostat.mu());
  if (size == 0) {
    mirostat.record(*row.params, 0);
    return row_.argmax();
  }
  const std::size_t drawn = row_.draw_kept(size, fraction);
  mirostat.record(*row.params, std::log2(total_weight(candidates(size)) / row_.weights()[drawn]));
  return row_.ids()[drawn];
}

// Keeps the tokens that mirostat's version 1 keeps. Returns their number, at least 1.
std::size_t Sampler::Impl::keep_likeliest(float temperature, float mu) {
  std::array<float, kMirostatEstimate> likeliest;
  const std::span<const std::int32_t> ids = row_.likeliest(kMirostatEstimate);
  std::transform(ids.begin(), ids.end(), likeliest.begin(),
                 [this](std::int32_t id) { return row_.logits()[id]; });
  const int top_k =
      mirostat_top_k(std::span(likeliest).first(ids.size()), temperature, mu, vocab_size_);
  return row_.keep(1.0f / temperature, {.top_k = top_k});
}

// Keeps the tokens that mirostat's version 2 keeps. Returns their number, 0 if it keeps the
// likeliest token alone.
std::size_t Sampler::Impl::keep_unsurprising(float temperature, float mu) {
  const double total = static_cast<double>(row_.weigh(1.0f / temperature)) /
                       double{ExpConstants::kWeightOfTheLikeliest};
  return row_.keep_heavy(static_cast<float>(total * std::exp2(-double{mu})));
}

// Applies min-p, top-k, typical-p, top-p and XTC, and draws from the remaining tokens.
int Sampler::Impl::draw_filtered(const RowSampling& row, float temperature, std::int64_t fraction) {
  const SamplingParams& params = *row.params;
  std::size_t size =
      row_.keep(1.0f / temperature, {.top_k = params.top_k,
                                     .top_p = params.typical_p < 1 ? 1.0f : params.top_p,
                                     .min_p_margin = min_p_margin(params.min_p, temperature)});
  if (params.typical_p < 1) {
    size = typical_filter_.keep(candidates(size), temperature, params.typical_p);
    size = row_.keep_top_p(size, params.top_p);
  }
  if (throws_xtc(row)) size = exclude_top_choices(candidates(size), params.xtc_threshold);
  return row_.ids()[row_.draw_kept(size, fraction)];
}

Candidates Sampler::Impl::candidates(std::size_t size) {
  return {row_.ids().first(size), row_.values().first(size), row_.weights().first(size)};
}

Sampler::Sampler(int vocab_size, std::vector<std::shared_ptr<const LogitsProcessor>> processors)
    : impl_(std::make_unique<Impl>(vocab_size, std::move(processors))) {}
Sampler::~Sampler() = default;
Sampler::Sampler(Sampler&&) noexcept = default;
Sampler& Sampler::operator=(Sampler&&) noexcept = default;

Result<int> Sampler::sample(const RowSampling& row) {
  return impl_->sample(row);
}

}  // namespace pagoda
