#include "ops/argmax/argmax.h"

#include <fmt/format.h>

namespace pagoda {

Tensor argmax(Exec& exec, const Tensor& logits) {
  PAGODA_CHECK(logits.dtype() == DType::kFloat32 && logits.shape().rank() == 2 &&
                   logits.extent(1) > 0 && logits.is_contiguous(),
               fmt::format("[argmax] logits: expected contiguous [rows, vocab] float32, got {} {}",
                           to_string(logits.shape()), dtype_name(logits.dtype())));
  const OpTimer timer(exec, [&] { return OpCall{.op = "argmax", .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::argmax)> kBodies{reference::argmax, cpu::argmax,
                                                               mlx::argmax, cuda::argmax};
  return kBodies.of(exec)(exec, logits);
}

}  // namespace pagoda
