#include "ops/log_probs/log_probs.h"

#include <cmath>

#include "ops/op_cases.h"
#include "ops/sample/row_cases.h"

namespace pagoda {
namespace {

// Case rows are bfloat16 values; float16 can hold all of them except the largest distances.
struct LogProbsShape {
  int rows;
  int vocab_size;
  int num_top = 0;
  DType dtype = DType::kFloat32;
  bool is_large = false;
};

// Returns a token that is not forbidden if there is one, else 0.
std::int32_t chosen_token(std::span<const float> logits, int row) {
  const auto vocab_size = static_cast<std::int32_t>(logits.size());
  for (std::int32_t i = 0; i < vocab_size; ++i) {
    const std::int32_t id = (row * 7919 + i) % vocab_size;
    if (std::isfinite(logits[id])) return id;
  }
  return 0;
}

OpCase make_log_probs_case(const LogProbsShape& shape) {
  OpCase result{
      .op = "log_probs",
      .description = fmt::format("{} x {} {}, top {}", shape.rows, shape.vocab_size,
                                 dtype_name(shape.dtype), shape.num_top),
      .num_tokens = shape.rows,
      .tolerance = {.cpu = 1e-6f, .mlx = 1e-5f, .cuda = 1e-5f},
      .bytes = static_cast<double>(dtype_size(shape.dtype)) * shape.rows * shape.vocab_size,
      .is_large = shape.is_large};
  result.prepare = [=](Exec& exec, std::span<const int> wanted) -> Result<CaseRun> {
    // After each row that is asked for comes one that is not.
    std::vector<float> values;
    std::vector<std::int32_t> rows, token_ids;
    for (const int row : wanted) {
      // Rows of the largest distances are left out: their log-probabilities would hide the others'
      // errors.
      const std::vector<float> logits =
          case_logits(row % 16 == 15 ? row + 1 : row, shape.vocab_size);
      values.insert(values.end(), logits.begin(), logits.end());
      rows.push_back(static_cast<std::int32_t>(2 * rows.size()));
      values.insert(values.end(), shape.vocab_size, 0.0f);
      token_ids.push_back(row % 9 == 8 ? -1 : chosen_token(logits, row));
    }
    const auto n = static_cast<std::int64_t>(wanted.size());
    return CaseRun([&exec, shape,
                    logits = upload_as(exec, shape.dtype, values, {2 * n, shape.vocab_size}),
                    at = exec.upload<std::int32_t>(rows, {n}),
                    ids = exec.upload<std::int32_t>(token_ids, {n})] {
      const LogProbs result = log_probs(exec, logits, ids, {.rows = &at, .num_top = shape.num_top});
      std::vector<Tensor> outputs = {result.chosen, result.rank};
      if (shape.num_top > 0) outputs.insert(outputs.end(), {result.top_ids, result.top_logprobs});
      return outputs;
    });
  };
  return result;
}

}  // namespace

std::vector<OpCase> log_probs_cases() {
  return {
      make_log_probs_case({.rows = 1, .vocab_size = 1, .num_top = 1}),
      make_log_probs_case({.rows = 20, .vocab_size = 7, .num_top = 7}),
      make_log_probs_case({.rows = 40, .vocab_size = 129}),
      make_log_probs_case({.rows = 24, .vocab_size = 3000, .num_top = 20}),
      make_log_probs_case(
          {.rows = 24, .vocab_size = 1000, .num_top = 3, .dtype = DType::kBFloat16}),
      make_log_probs_case({.rows = 7, .vocab_size = 1000, .num_top = 3, .dtype = DType::kFloat16}),
      make_log_probs_case({.rows = 8, .vocab_size = 151936, .num_top = 5, .is_large = true})};
}

}  // namespace pagoda
