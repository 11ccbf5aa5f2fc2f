#include "ops/apply_penalties/apply_penalties.h"

#include <fmt/format.h>

namespace pagoda {

Tensor apply_penalties(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                       const Tensor& output_counts, const PenaltyFactors& factors) {
  constexpr std::string_view kName = "apply_penalties";
  check_logits(kName, logits);
  check_entries(kName, entries);
  PAGODA_CHECK(output_counts.dtype() == DType::kInt32 &&
                   output_counts.shape() == entries.rows.shape() && output_counts.is_contiguous(),
               fmt::format("[{}] output_counts: expected {} int32, got {}", kName,
                           to_string(entries.rows.shape()), to_string(output_counts.shape())));
  const Shape rows = {logits.extent(0)};
  for (const Tensor* factor : {&factors.repetition, &factors.frequency, &factors.presence}) {
    PAGODA_CHECK(
        factor->dtype() == DType::kFloat32 && factor->shape() == rows && factor->is_contiguous(),
        fmt::format("[{}] factors: expected {} float32, got {}", kName, to_string(rows),
                    to_string(factor->shape())));
  }
  const OpTimer timer(exec, [&] { return OpCall{.op = kName, .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::apply_penalties)> kBodies{
      reference::apply_penalties, cpu::apply_penalties, mlx::apply_penalties,
      cuda::apply_penalties};
  return kBodies.of(exec)(exec, logits, entries, output_counts, factors);
}

}  // namespace pagoda
