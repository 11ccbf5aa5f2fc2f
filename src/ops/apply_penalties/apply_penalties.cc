#include "ops/apply_penalties/apply_penalties.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor apply_penalties(Exec& exec, const Tensor& logits, const SeenTokenCounts& seen,
                       const PenaltyFactors& factors) {
  constexpr std::string_view kName = "apply_penalties";
  check_logits(kName, logits);
  PAGODA_CHECK(seen.counts.dtype() == DType::kInt32 && seen.counts.shape().rank() == 2 &&
                   seen.counts.extent(1) == logits.extent(1) && seen.counts.is_contiguous(),
               fmt::format("[{}] counts: expected contiguous [histograms, {}] int32, got {} {}",
                           kName, logits.extent(1), to_string(seen.counts.shape()),
                           dtype_name(seen.counts.dtype())));
  const Shape rows = {logits.extent(0)};
  check_tensor(kName, "histogram_of", seen.histogram_of, DType::kInt32, rows);
  check_tensor(kName, "repetition", factors.repetition, DType::kFloat32, rows);
  check_tensor(kName, "frequency", factors.frequency, DType::kFloat32, rows);
  check_tensor(kName, "presence", factors.presence, DType::kFloat32, rows);
  const OpTimer timer(exec, [&] {
    return OpCall{
        .op = kName,
        .read_bytes = bytes_of(logits) + dtype_size(DType::kInt32) * logits.num_elements()};
  });
  static constexpr Bodies<decltype(reference::apply_penalties)> kBodies{
      reference::apply_penalties, cpu::apply_penalties, gpu::apply_penalties};
  return kBodies.of(exec)(exec, logits, seen, factors);
}

}  // namespace pagoda
