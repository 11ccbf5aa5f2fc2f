#include "ops/log_probs/log_probs.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

LogProbs log_probs(Exec& exec, const Tensor& logits, const Tensor& token_ids,
                   const LogProbsArgs& args) {
  check_logits("log_probs", logits);
  check_weighed_vocabulary("log_probs", logits);
  if (args.rows != nullptr) check_list("log_probs", "rows", *args.rows);
  const Shape expected = {args.rows != nullptr ? args.rows->extent(0) : logits.extent(0)};
  check_tensor("log_probs", "token_ids", token_ids, DType::kInt32, expected);
  PAGODA_CHECK(
      0 <= args.num_top && args.num_top <= kMaxTopTokens && args.num_top <= logits.extent(1),
      fmt::format("[log_probs] num_top: expected 0 to {}, got {}", kMaxTopTokens, args.num_top));
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "log_probs",
                  .read_bytes = static_cast<double>(expected[0] * logits.extent(1)) *
                                static_cast<double>(dtype_size(logits.dtype()))};
  });
  static constexpr Bodies<decltype(reference::log_probs)> kBodies{reference::log_probs,
                                                                  cpu::log_probs, gpu::log_probs};
  return kBodies.of(exec)(exec, logits, token_ids, args);
}

}  // namespace pagoda
