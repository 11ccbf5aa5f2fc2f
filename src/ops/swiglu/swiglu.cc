#include "ops/swiglu/swiglu.h"

#include <fmt/format.h>

namespace pagoda {

Tensor swiglu(Exec& exec, const Tensor& gate_up) {
  PAGODA_CHECK(gate_up.shape().rank() == 2 && gate_up.extent(1) % 2 == 0 && gate_up.is_contiguous(),
               fmt::format("[swiglu] gate_up: expected contiguous [tokens, 2 * dim], got {}",
                           to_string(gate_up.shape())));
  const OpTimer timer(exec,
                      [&] { return OpCall{.op = "swiglu", .read_bytes = bytes_of(gate_up)}; });
  static constexpr Bodies<decltype(reference::swiglu)> kBodies{reference::swiglu, cpu::swiglu,
                                                               mlx::swiglu, cuda::swiglu};
  return kBodies.of(exec)(exec, gate_up);
}

}  // namespace pagoda
