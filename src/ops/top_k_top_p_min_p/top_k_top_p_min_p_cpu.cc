#include "backend/cpu/cpu_exec.h"
#include "ops/sample/row_sampler_cpu.h"
#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

namespace pagoda::cpu {

KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits, const Tensor& inverse_temperature,
                             const RowFilters& filters) {
  const std::int64_t num_rows = logits.extent(0);
  const std::int64_t vocab_size = logits.extent(1);
  KeptTokens kept{.least = exec.allocate(DType::kFloat32, {num_rows}),
                  .num_ties = exec.allocate(DType::kInt32, {num_rows})};
  const auto num_words = static_cast<std::int64_t>(RowSampler::num_words(vocab_size));
  const Tensor memory = exec.allocate(DType::kInt32, {exec.num_threads(), num_words});
  pool_of(exec).parallel_for(num_rows, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    RowSampler sampler(static_cast<int>(vocab_size),
                       memory.span<std::int32_t>().subspan(thread * num_words, num_words));
    for (std::int64_t row = begin; row < end; ++row) {
      RowCut cut;
      const auto values = logits.span<float>().subspan(row * vocab_size, vocab_size);
      if (sampler.scan(values) == 0) {
        cut = sampler.cut(inverse_temperature.data<float>()[row],
                          {.top_k = filters.top_k.data<std::int32_t>()[row],
                           .top_p = filters.top_p.data<float>()[row],
                           .min_p_margin = filters.min_p_margin.data<float>()[row]});
      }
      kept.least.data<float>()[row] = cut.least;
      kept.num_ties.data<std::int32_t>()[row] = cut.num_ties;
    }
  });
  return kept;
}

}  // namespace pagoda::cpu
