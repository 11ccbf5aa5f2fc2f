#include "ops/sample/rows_cpu.h"

namespace pagoda::cpu {

KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits, const Tensor& inverse_temperature,
                             const RowFilters& filters) {
  const std::int64_t num_rows = logits.extent(0);
  const std::int64_t vocab_size = logits.extent(1);
  KeptTokens kept{.least = exec.allocate(DType::kFloat32, {num_rows}),
                  .num_ties = exec.allocate(DType::kInt32, {num_rows})};
  for_each_row(
      exec, num_rows, vocab_size, [&](RowSampler& sampler, std::int64_t row, int /*thread*/) {
        RowThreshold threshold;
        if (sampler.scan(logits.span<float>().subspan(row * vocab_size, vocab_size)) == 0)
          threshold =
              sampler.threshold(inverse_temperature.data<float>()[row], filter_of(filters, row));
        kept.least.data<float>()[row] = threshold.least;
        kept.num_ties.data<std::int32_t>()[row] = threshold.num_ties;
      });
  return kept;
}

}  // namespace pagoda::cpu
