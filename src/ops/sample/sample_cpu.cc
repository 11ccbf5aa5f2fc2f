#include "ops/sample/rows_cpu.h"
#include "ops/sample/sample.h"

namespace pagoda::cpu {

Tensor sample(Exec& exec, const Tensor& logits, const SampleArgs& args) {
  const std::int64_t vocab_size = logits.extent(1);
  Tensor out = exec.allocate(DType::kInt32, {logits.extent(0)});
  for_each_row(exec, logits.extent(0), vocab_size,
               [&](RowSampler& sampler, std::int64_t row, int /*thread*/) {
                 std::int32_t& id = out.data<std::int32_t>()[row];
                 id = sampler.scan(logits.span<float>().subspan(row * vocab_size, vocab_size));
                 if (id < 0) return;
                 const float inverse_temperature = args.inverse_temperature.data<float>()[row];
                 if (inverse_temperature == kGreedyInverseTemperature) {
                   id = sampler.argmax();
                   return;
                 }
                 const std::int32_t* uniform = args.uniforms.data<std::int32_t>() + 2 * row;
                 id = sampler.draw(
                     inverse_temperature,
                     args.filters != nullptr ? filter_of(*args.filters, row) : RowFilter(),
                     (std::int64_t{uniform[0]} << 31) + uniform[1]);
               });
  return out;
}

}  // namespace pagoda::cpu
