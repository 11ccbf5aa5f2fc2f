#include "ops/gate_heads/gate_heads.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor gate_heads(Exec& exec, const Tensor& x, const Tensor& gate) {
  PAGODA_CHECK(
      x.shape().rank() == 2 && x.is_contiguous() && gate.shape().rank() == 2 &&
          gate.is_contiguous() && gate.extent(0) == x.extent(0) &&
          x.extent(1) % gate.extent(1) == 0,
      fmt::format("[gate_heads] expected contiguous [tokens, dim] and gates of it, got {} and {}",
                  to_string(x.shape()), to_string(gate.shape())));
  check_tensor("gate_heads", "x", x, DType::kFloat32, x.shape());
  check_tensor("gate_heads", "gate", gate, DType::kFloat32, gate.shape());
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "gate_heads", .read_bytes = bytes_of(x) + bytes_of(gate)}; });
  static constexpr Bodies<decltype(reference::gate_heads)> kBodies{
      reference::gate_heads, cpu::gate_heads, gpu::gate_heads};
  return kBodies.of(exec)(exec, x, gate);
}

}  // namespace pagoda
