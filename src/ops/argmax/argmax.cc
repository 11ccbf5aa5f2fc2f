#include "ops/argmax/argmax.h"

#include "ops/check_tensor.h"

namespace pagoda {

Status status_of_drawn(std::int32_t drawn, std::int64_t vocab_size) {
  if (drawn == kRowIsNotNumbers)
    return invalid_argument("[sampler] logits: expected numbers, got NaN or +inf");
  if (drawn == kRowHasNoToken) {
    return invalid_argument("[sampler] logits: expected a token to choose, got -inf for all {}",
                            vocab_size);
  }
  return ok_status();
}

Tensor argmax(Exec& exec, const Tensor& logits) {
  check_float32_logits("argmax", logits);
  const OpTimer timer(exec, [&] { return OpCall{.op = "argmax", .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::argmax)> kBodies{reference::argmax, cpu::argmax,
                                                               mlx::argmax, cuda::argmax};
  return kBodies.of(exec)(exec, logits);
}

}  // namespace pagoda
