#include "backend/cpu/cpu_exec.h"
#include "ops/sample/row_sampler_cpu.h"
#include "ops/sample/sample.h"

namespace pagoda::cpu {
namespace {

RowFilter filter_of(const RowFilters* filters, std::int64_t row) {
  if (filters == nullptr) return {};
  return {.top_k = filters->top_k.data<std::int32_t>()[row],
          .top_p = filters->top_p.data<float>()[row],
          .min_p_margin = filters->min_p_margin.data<float>()[row]};
}

}  // namespace

Tensor sample(Exec& exec, const Tensor& logits, const SampleArgs& args) {
  const std::int64_t num_rows = logits.extent(0);
  const std::int64_t vocab_size = logits.extent(1);
  Tensor out = exec.allocate(DType::kInt32, {num_rows});
  const auto num_words = static_cast<std::int64_t>(RowSampler::num_words(vocab_size));
  const Tensor memory = exec.allocate(DType::kInt32, {exec.num_threads(), num_words});
  pool_of(exec).parallel_for(num_rows, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    RowSampler sampler(static_cast<int>(vocab_size),
                       memory.span<std::int32_t>().subspan(thread * num_words, num_words));
    for (std::int64_t row = begin; row < end; ++row) {
      std::int32_t& id = out.data<std::int32_t>()[row];
      id = sampler.scan(logits.span<float>().subspan(row * vocab_size, vocab_size));
      if (id < 0) continue;
      const float inverse_temperature = args.inverse_temperature.data<float>()[row];
      if (inverse_temperature == kGreedyInverseTemperature) {
        id = sampler.argmax();
        continue;
      }
      const std::int32_t* uniform = args.uniforms.data<std::int32_t>() + 2 * row;
      id = sampler.draw(inverse_temperature, filter_of(args.filters, row),
                        (std::int64_t{uniform[0]} << 31) + uniform[1]);
    }
  });
  return out;
}

}  // namespace pagoda::cpu
