#include "sampling/device/row_log_probs.h"

#include <algorithm>
#include <utility>

#include "sampling/device/unread_values.h"
#include "tensor/read_values.h"

namespace pagoda {

void RowLogProbs::clear() {
  rows_.clear();
  num_top_ = 0;
}

void RowLogProbs::add(int row, int num_top) {
  rows_.push_back(row);
  num_top_ = std::max(num_top_, num_top);
}

LogProbs RowLogProbs::compute(Exec& exec, const Tensor& logits, const Tensor& token_ids) const {
  const Tensor rows = exec.upload<std::int32_t>(rows_, {num_rows()});
  const auto vocab_size = static_cast<int>(logits.extent(1));
  return log_probs(exec, logits, token_ids,
                   {.rows = &rows, .num_top = std::min(num_top_, vocab_size)});
}

void RowLogProbs::call_ops(Exec& exec, const Tensor& logits, const Tensor& token_ids) {
  const Tensor all = unread_integers(exec, logits.extent(0));
  for (const int num_top : {0, 1}) {
    log_probs(exec, logits, token_ids, {.num_top = num_top});
    log_probs(exec, logits, token_ids, {.rows = &all, .num_top = num_top});
  }
}

std::array<Tensor, HostLogProbs::kNumTensors> HostLogProbs::tensors_of(const LogProbs& log_probs) {
  return {log_probs.chosen, log_probs.rank, log_probs.top_ids, log_probs.top_logprobs};
}

HostLogProbs::HostLogProbs(LogProbs log_probs,
                           std::span<const std::span<const std::byte>, kNumTensors> values)
    : log_probs_(std::move(log_probs)),
      chosen_(values_in<float>(values[0])),
      ranks_(values_in<std::int32_t>(values[1])),
      top_ids_(values_in<std::int32_t>(values[2])),
      top_logprobs_(values_in<float>(values[3])) {}

Result<HostLogProbs> HostLogProbs::read(Exec& exec, LogProbs log_probs) {
  std::array<std::span<const std::byte>, kNumTensors> values;
  PAGODA_RETURN_IF_ERROR(exec.read_packet(tensors_of(log_probs), values));
  return HostLogProbs(std::move(log_probs), values);
}

Result<TokenLogprobs> HostLogProbs::of(int i, int token_id, int num_top) const {
  if (ranks_[i] == 0) {
    return invalid_argument(
        "[log_probs] logits: expected numbers, one above -inf at least, got others");
  }
  TokenLogprobs result;
  result.chosen = {.token_id = token_id, .logprob = chosen_[i]};
  result.rank = ranks_[i];
  const std::size_t width = top_ids_.size() / ranks_.size();
  const std::size_t count = std::min<std::size_t>(num_top, width);
  result.top.reserve(count);
  for (std::size_t at = i * width; at < i * width + count && top_ids_[at] >= 0; ++at)
    result.top.push_back({.token_id = top_ids_[at], .logprob = top_logprobs_[at]});
  return result;
}

}  // namespace pagoda
