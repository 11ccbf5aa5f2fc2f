#include "ops/apply_logit_bias/apply_logit_bias.h"

#include <fmt/format.h>

namespace pagoda {
namespace {

constexpr std::string_view kName = "apply_logit_bias";

void check_entries(const LogitEntries& entries) {
  PAGODA_CHECK(entries.rows.dtype() == DType::kInt32 && entries.rows.shape().rank() == 1 &&
                   entries.rows.is_contiguous() && entries.token_ids.dtype() == DType::kInt32 &&
                   entries.token_ids.shape() == entries.rows.shape() &&
                   entries.token_ids.is_contiguous(),
               fmt::format("[{}] entries: expected [n] int32 twice, got {} and {}", kName,
                           to_string(entries.rows.shape()), to_string(entries.token_ids.shape())));
}

}  // namespace

void check_logits(std::string_view op, const Tensor& logits) {
  PAGODA_CHECK(logits.dtype() != DType::kInt32 && logits.shape().rank() == 2 &&
                   logits.extent(1) > 0 && logits.is_contiguous(),
               fmt::format("[{}] logits: expected contiguous [rows, vocab], got {} {}", op,
                           to_string(logits.shape()), dtype_name(logits.dtype())));
}

Tensor apply_logit_bias(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                        const Tensor& biases) {
  check_logits(kName, logits);
  check_entries(entries);
  PAGODA_CHECK(biases.dtype() == DType::kFloat32 && biases.shape() == entries.rows.shape() &&
                   biases.is_contiguous(),
               fmt::format("[{}] biases: expected {} float32, got {} {}", kName,
                           to_string(entries.rows.shape()), to_string(biases.shape()),
                           dtype_name(biases.dtype())));
  const OpTimer timer(exec, [&] { return OpCall{.op = kName, .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::apply_logit_bias)> kBodies{
      reference::apply_logit_bias, cpu::apply_logit_bias, mlx::apply_logit_bias,
      cuda::apply_logit_bias};
  return kBodies.of(exec)(exec, logits, entries, biases);
}

}  // namespace pagoda
