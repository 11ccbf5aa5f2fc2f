#include "ops/top_k_top_p_min_p/top_k_top_p_min_p.h"

#include "ops/check_tensor.h"

namespace pagoda {

void check_row_filters(std::string_view op, const Tensor& logits, const RowFilters& filters) {
  const Shape rows = {logits.extent(0)};
  check_tensor(op, "top_k", filters.top_k, DType::kInt32, rows);
  check_tensor(op, "top_p", filters.top_p, DType::kFloat32, rows);
  check_tensor(op, "min_p_margin", filters.min_p_margin, DType::kFloat32, rows);
}

KeptTokens top_k_top_p_min_p(Exec& exec, const Tensor& logits, const Tensor& inverse_temperature,
                             const RowFilters& filters) {
  constexpr std::string_view kName = "top_k_top_p_min_p";
  check_float32_logits(kName, logits);
  check_weighed_vocabulary(kName, logits);
  check_tensor(kName, "inverse_temperature", inverse_temperature, DType::kFloat32,
               {logits.extent(0)});
  check_row_filters(kName, logits, filters);
  const OpTimer timer(exec, [&] { return OpCall{.op = kName, .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::top_k_top_p_min_p)> kBodies{
      reference::top_k_top_p_min_p, cpu::top_k_top_p_min_p, gpu::top_k_top_p_min_p};
  return kBodies.of(exec)(exec, logits, inverse_temperature, filters);
}

}  // namespace pagoda
