#include "sampling/dry.h"

#include <algorithm>

#include "core/check.h"
#include "sampling/token_rules.h"

namespace pagoda {
namespace {

// Larger than any model's logits, and small enough that differences stay finite in float32.
constexpr double kMaxPenalty = 1e30;
// Up to this many new tokens are added to the runs one by one; for more, the runs are rebuilt.
constexpr std::size_t kMaxSingleSteps = 16;

// Computes the power by squaring: multiplications alone give the same bits on every machine.
float penalty_of(const SamplingParams& params, int length) {
  double power = 1;
  double square = params.dry_base;
  for (int exponent = length - params.dry_allowed_length; exponent > 0; exponent /= 2) {
    if (exponent % 2 == 1) power = std::min(power * square, kMaxPenalty);
    square = std::min(square * square, kMaxPenalty);
  }
  return static_cast<float>(std::min(params.dry_multiplier * power, kMaxPenalty));
}

}  // namespace

bool DryState::is_needed(const SamplingParams& params) {
  return params.dry_multiplier > 0 && params.dry_penalty_last_n != 0;
}

DryState::DryState(const SamplingParams& params, int max_tokens)
    : runs_(std::max(max_tokens, 1), 0), longest_(std::max(max_tokens, 1), 0) {
  if (params.token_rules) breakers_ = params.token_rules->dry_sequence_breakers;
  tokens_.reserve(runs_.size());
  is_breaker_.reserve(runs_.size());
  penalised_.reserve(runs_.size());
}

void DryState::append(int index, int token_id) {
  PAGODA_CHECK(tokens_.size() < runs_.size(), "[dry] a history outgrew its limit");
  tokens_.push_back(index);
  if (static_cast<std::size_t>(index) < is_breaker_.size()) return;
  is_breaker_.push_back(std::binary_search(breakers_.begin(), breakers_.end(), token_id) ? 1 : 0);
}

void DryState::clear() {
  tokens_.clear();
  is_breaker_.clear();
  std::fill(runs_.begin(), runs_.end(), 0);
  num_advanced_ = 0;
}

void DryState::advance() {
  if (tokens_.size() - num_advanced_ > kMaxSingleSteps) rebuild();
  while (num_advanced_ < tokens_.size()) advance_by_one();
}

void DryState::advance_by_one() {
  const std::size_t last = num_advanced_++;
  const std::int32_t token = tokens_[last];
  const std::int32_t* const tokens = tokens_.data();
  std::int32_t* const runs = runs_.data() + (runs_.size() - last);
  if (is_breaker_[token] != 0) {
    std::fill_n(runs, last, 0);
    return;
  }
  for (std::size_t i = 0; i < last; ++i) runs[i] = tokens[i] == token ? runs[i] + 1 : 0;
}

// Computes the runs as the Z-array of the reversed history, limited by the last breaker.
void DryState::rebuild() {
  const std::size_t size = tokens_.size();
  const auto back = [this, size](std::size_t i) { return tokens_[size - 1 - i]; };
  std::size_t num_unbroken = 0;
  while (num_unbroken < size && is_breaker_[back(num_unbroken)] == 0) ++num_unbroken;
  std::size_t box_begin = 0;
  std::size_t box_end = 0;
  for (std::size_t lag = 1; lag < size; ++lag) {
    std::size_t length = 0;
    if (lag < box_end) length = std::min<std::size_t>(box_end - lag, run(lag - box_begin));
    while (lag + length < size && back(length) == back(lag + length)) ++length;
    if (lag + length > box_end) {
      box_begin = lag;
      box_end = lag + length;
    }
    run(lag) = static_cast<std::int32_t>(length);
  }
  const auto limit = static_cast<std::int32_t>(num_unbroken);
  for (std::size_t lag = 1; lag < size; ++lag) run(lag) = std::min(run(lag), limit);
  num_advanced_ = size;
}

void DryState::find_longest(int allowed_length, int last_n) {
  const std::size_t size = tokens_.size();
  const std::size_t first =
      last_n > 0 && static_cast<std::size_t>(last_n) < size ? size - last_n : 0;
  const std::int32_t* const runs = runs_.data() + (runs_.size() - (size - 1));
  for (std::size_t i = first; i + 1 < size; ++i) {
    if (runs[i] < allowed_length) continue;
    const int length = std::min(runs[i], static_cast<std::int32_t>(i - first + 1));
    const std::int32_t next = tokens_[i + 1];
    if (length < allowed_length || is_breaker_[next] != 0) continue;
    if (longest_[next] == 0) penalised_.push_back(next);
    longest_[next] = std::max(longest_[next], length);
  }
}

void DryState::apply(const SamplingParams& params, std::span<const SeenToken> seen,
                     std::span<float> logits) {
  if (tokens_.empty()) return;
  find_longest(params.dry_allowed_length, params.dry_penalty_last_n);
  for (const std::int32_t index : penalised_) {
    logits[seen[index].token_id] -= penalty_of(params, longest_[index]);
    longest_[index] = 0;
  }
  penalised_.clear();
}

}  // namespace pagoda
