#include "ops/argmax/argmax.h"

#include "ops/check_tensor.h"

namespace pagoda {

Tensor argmax(Exec& exec, const Tensor& logits) {
  check_float32_logits("argmax", logits);
  const OpTimer timer(exec, [&] { return OpCall{.op = "argmax", .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::argmax)> kBodies{reference::argmax, cpu::argmax,
                                                               gpu::argmax};
  return kBodies.of(exec)(exec, logits);
}

}  // namespace pagoda
