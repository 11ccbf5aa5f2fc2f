#include "ops/glu/glu.h"

#include <fmt/format.h>

namespace pagoda {

Tensor glu(Exec& exec, const Tensor& gate_up, const GluArgs& args) {
  PAGODA_CHECK(gate_up.shape().rank() == 2 && gate_up.extent(1) % 2 == 0 && gate_up.is_contiguous(),
               fmt::format("[glu] gate_up: expected contiguous [tokens, 2 * dim], got {}",
                           to_string(gate_up.shape())));
  const OpTimer timer(exec, [&] { return OpCall{.op = "glu", .read_bytes = bytes_of(gate_up)}; });
  static constexpr Bodies<decltype(reference::glu)> kBodies{reference::glu, cpu::glu, mlx::glu,
                                                            cuda::glu};
  return kBodies.of(exec)(exec, gate_up, args);
}

}  // namespace pagoda
