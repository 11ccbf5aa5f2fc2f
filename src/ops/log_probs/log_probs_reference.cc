#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "ops/log_probs/log_probs_native.h"

namespace pagoda::reference {
namespace {

void fill_row(std::span<const float> logits, std::int32_t token_id, const LogProbsRow& out) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  float max = -kInfinity;
  for (const float x : logits) {
    if (!(x < kInfinity)) return;
    max = std::max(max, x);
  }
  if (token_id < 0 || max == -kInfinity) return;
  double sum = 0;
  for (const float x : logits) sum += std::exp(double{x} - max);
  const double log_sum_exp = max + std::log(sum);
  const float logit = logits[token_id];
  out.chosen = static_cast<float>(logit - log_sum_exp);
  out.rank = 1 + static_cast<std::int32_t>(std::count_if(logits.begin(), logits.end(),
                                                         [&](float x) { return x > logit; }));
  std::vector<std::int32_t> ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(),
                   [&](std::int32_t a, std::int32_t b) { return logits[a] > logits[b]; });
  for (std::size_t i = 0; i < out.top_ids.size(); ++i) {
    if (logits[ids[i]] == -kInfinity) break;
    out.top_ids[i] = ids[i];
    out.top_logprobs[i] = static_cast<float>(logits[ids[i]] - log_sum_exp);
  }
}

}  // namespace

LogProbs log_probs(Exec& exec, const Tensor& logits, const Tensor& token_ids,
                   const LogProbsArgs& args) {
  LogProbs result = allocate_log_probs(exec, token_ids.extent(0), args.num_top);
  std::vector<float> widened(logits.extent(1));
  for (std::int64_t i = 0; i < token_ids.extent(0); ++i) {
    const std::int64_t row = args.rows != nullptr ? args.rows->data<std::int32_t>()[i] : i;
    fill_row(row_of(logits, row, widened), token_ids.data<std::int32_t>()[i], row_of(result, i));
  }
  return result;
}

}  // namespace pagoda::reference
