// Code that the native bodies of log_probs share: their results, and how they read and fill a row.
#pragma once

#include <cstdint>
#include <span>

#include "ops/log_probs/log_probs.h"

namespace pagoda {

inline LogProbs allocate_log_probs(Exec& exec, std::int64_t num_rows, int num_top) {
  LogProbs result{.chosen = exec.allocate(DType::kFloat32, {num_rows}),
                  .rank = exec.allocate(DType::kInt32, {num_rows}),
                  .top_ids = {},
                  .top_logprobs = {}};
  if (num_top == 0) return result;
  result.top_ids = exec.allocate(DType::kInt32, {num_rows, num_top});
  result.top_logprobs = exec.allocate(DType::kFloat32, {num_rows, num_top});
  return result;
}

// Returns the row's logits. If they are stored in 16 bits, they are converted into `widened`
// [vocab].
inline std::span<const float> row_of(const Tensor& logits, std::int64_t row,
                                     std::span<float> widened) {
  const std::int64_t vocab_size = logits.extent(1);
  if (logits.dtype() == DType::kFloat32)
    return logits.span<float>().subspan(row * vocab_size, vocab_size);
  const auto widen = [&](const auto* from) {
    for (std::int64_t id = 0; id < vocab_size; ++id)
      widened[id] = to_float(from[row * vocab_size + id]);
  };
  if (logits.dtype() == DType::kBFloat16) {
    widen(logits.data<bf16>());
  } else {
    widen(logits.data<f16>());
  }
  return widened.first(vocab_size);
}

// Row i of the results.
struct LogProbsRow {
  float& chosen;
  std::int32_t& rank;
  std::span<std::int32_t> top_ids;
  std::span<float> top_logprobs;
};

inline LogProbsRow row_of(const LogProbs& result, std::int64_t i) {
  LogProbsRow row{.chosen = result.chosen.data<float>()[i],
                  .rank = result.rank.data<std::int32_t>()[i],
                  .top_ids = {},
                  .top_logprobs = {}};
  row.chosen = 0;
  row.rank = 0;
  if (!result.top_ids.defined()) return row;
  const std::int64_t num_top = result.top_ids.extent(1);
  row.top_ids = result.top_ids.span<std::int32_t>().subspan(i * num_top, num_top);
  row.top_logprobs = result.top_logprobs.span<float>().subspan(i * num_top, num_top);
  for (std::int32_t& id : row.top_ids) id = -1;
  for (float& logprob : row.top_logprobs) logprob = 0;
  return row;
}

}  // namespace pagoda
