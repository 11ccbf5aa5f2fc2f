// RowLogProbs: the rows of a step for which a request asks for log-probabilities. An op computes
// them where the logits are (ops/log_probs), so a row comes back as a few numbers. Without such
// rows no log-sum-exp is computed.
//
// A row's result is a function of its logits alone, not of the other rows that are added or of
// their numbers of top tokens.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "core/status.h"
#include "ops/log_probs/log_probs.h"
#include "sampling/token_logprobs.h"
#include "tensor/exec.h"

namespace pagoda {

// Thread-compatible.
class RowLogProbs {
 public:
  void clear();  // keeps the memory
  // Adds row `row` of the logits, and how many of its likeliest tokens to report.
  void add(int row, int num_top);
  int num_rows() const { return static_cast<int>(rows_.size()); }

  // Computes the log-probabilities. logits [tokens, vocab]; token_ids [num_rows()] int32, negative
  // for no token
  LogProbs compute(Exec& exec, const Tensor& logits, const Tensor& token_ids) const;

  // Calls every op that compute() may call for logits [rows, vocab] and tokens [rows] int32, so
  // that a backend lists their kernels.
  static void call_ops(Exec& exec, const Tensor& logits, const Tensor& token_ids);

 private:
  std::vector<std::int32_t> rows_;
  int num_top_ = 0;  // the largest of all rows
};

// The op's results on the host. Holds the op's tensors, whose memory the results are in.
class HostLogProbs {
 public:
  // Lists the op's tensors, in the order of the constructor's values.
  static constexpr std::size_t kNumTensors = 4;
  static std::array<Tensor, kNumTensors> tensors_of(const LogProbs& log_probs);
  // Takes the values that Exec::read_packet() returned for these tensors.
  HostLogProbs(LogProbs log_probs, std::span<const std::span<const std::byte>, kNumTensors> values);
  // Waits for the tensors and reads them.
  static Result<HostLogProbs> read(Exec& exec, LogProbs log_probs);

  // Returns the log-probabilities of row i's token and of its `num_top` likeliest tokens, at most
  // as many as add() asked for. kInvalidArgument: the row holds a NaN or +inf, or only -inf.
  Result<TokenLogprobs> of(int i, int token_id, int num_top) const;

 private:
  LogProbs log_probs_;
  std::span<const float> chosen_;          // [rows]
  std::span<const std::int32_t> ranks_;    // [rows]
  std::span<const std::int32_t> top_ids_;  // [rows, num_top]
  std::span<const float> top_logprobs_;    // [rows, num_top]
};

}  // namespace pagoda
