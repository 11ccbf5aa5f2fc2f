#include "ops/log_probs/log_probs_native.h"
#include "ops/sample/rows_cpu.h"

namespace pagoda::cpu {
namespace {

void fill_row(RowSampler& sampler, std::int32_t token_id, const LogProbsRow& out) {
  const std::span<const float> logits = sampler.logits();
  const double log_sum_exp = sampler.log_sum_exp();
  out.chosen = static_cast<float>(logits[token_id] - log_sum_exp);
  out.rank = 1 + sampler.num_greater(logits[token_id]);
  if (out.top_ids.empty()) return;
  const auto likeliest = sampler.likeliest(static_cast<int>(out.top_ids.size()));
  for (std::size_t i = 0; i < likeliest.size(); ++i) {
    out.top_ids[i] = likeliest[i];
    out.top_logprobs[i] = static_cast<float>(logits[likeliest[i]] - log_sum_exp);
  }
}

}  // namespace

LogProbs log_probs(Exec& exec, const Tensor& logits, const Tensor& token_ids,
                   const LogProbsArgs& args) {
  const std::int64_t num_rows = token_ids.extent(0);
  const std::int64_t vocab_size = logits.extent(1);
  LogProbs result = allocate_log_probs(exec, num_rows, args.num_top);
  const bool is_narrow = logits.dtype() != DType::kFloat32;
  const Tensor widened =
      exec.allocate(DType::kFloat32, {exec.num_threads(), is_narrow ? vocab_size : 0});
  for_each_row(exec, num_rows, vocab_size, [&](RowSampler& sampler, std::int64_t i, int thread) {
    const auto wide = widened.span<float>().subspan(thread * widened.extent(1), widened.extent(1));
    const std::int64_t row = args.rows != nullptr ? args.rows->data<std::int32_t>()[i] : i;
    const LogProbsRow out = row_of(result, i);
    const std::int32_t token_id = token_ids.data<std::int32_t>()[i];
    if (token_id >= 0 && sampler.scan(row_of(logits, row, wide)) == 0)
      fill_row(sampler, token_id, out);
  });
  return result;
}

}  // namespace pagoda::cpu
