#include "ops/apply_logit_bias/apply_logit_bias.h"

#include "ops/check_tensor.h"

namespace pagoda {

Tensor apply_logit_bias(Exec& exec, const Tensor& logits, const LogitEntries& entries,
                        const Tensor& biases) {
  constexpr std::string_view kName = "apply_logit_bias";
  check_logits(kName, logits);
  check_list(kName, "rows", entries.rows);
  check_tensor(kName, "token_ids", entries.token_ids, DType::kInt32, entries.rows.shape());
  check_tensor(kName, "biases", biases, DType::kFloat32, entries.rows.shape());
  const OpTimer timer(exec, [&] { return OpCall{.op = kName, .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::apply_logit_bias)> kBodies{
      reference::apply_logit_bias, cpu::apply_logit_bias, gpu::apply_logit_bias};
  return kBodies.of(exec)(exec, logits, entries, biases);
}

}  // namespace pagoda
