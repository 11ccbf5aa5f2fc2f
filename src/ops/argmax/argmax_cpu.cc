#include "ops/argmax/argmax.h"

#include "backend/cpu/cpu_exec.h"
#include "draw/row_kernels.h"

namespace pagoda::cpu {
namespace {

std::int32_t argmax_row(std::span<const float> logits, std::span<float> block_max) {
  const RowScan scan = scan_row(logits, block_max);
  const std::int32_t fault = fault_of(scan);
  return fault == 0 ? first_of_largest(logits, block_max, scan.max) : fault;
}

}  // namespace

Tensor argmax(Exec& exec, const Tensor& logits) {
  const std::int64_t num_rows = logits.extent(0);
  const std::int64_t vocab_size = logits.extent(1);
  const auto num_blocks = static_cast<std::int64_t>(num_row_blocks(vocab_size));
  Tensor out = exec.allocate(DType::kInt32, {num_rows});
  const Tensor block_max = exec.allocate(DType::kFloat32, {exec.num_threads(), num_blocks});
  const std::span<const float> values = logits.span<float>();
  const std::span<float> maxima = block_max.span<float>();
  std::int32_t* ids = out.data<std::int32_t>();
  pool_of(exec).parallel_for(num_rows, 1, [&](std::int64_t begin, std::int64_t end, int thread) {
    for (std::int64_t row = begin; row < end; ++row) {
      ids[row] = argmax_row(values.subspan(row * vocab_size, vocab_size),
                            maxima.subspan(thread * num_blocks, num_blocks));
    }
  });
  return out;
}

}  // namespace pagoda::cpu
