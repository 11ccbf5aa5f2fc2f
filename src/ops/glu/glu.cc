#include "ops/glu/glu.h"

#include <fmt/format.h>

namespace pagoda {

Tensor glu(Exec& exec, const Tensor& gate, const Tensor& up, const GluArgs& args) {
  PAGODA_CHECK(
      gate.shape().rank() == 2 && gate.shape() == up.shape() && gate.dtype() == up.dtype() &&
          gate.stride(-1) == 1 && up.stride(-1) == 1,
      fmt::format("[glu] expected a gate [tokens, dim] and as much beside it, got {} and {}",
                  to_string(gate.shape()), to_string(up.shape())));
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "glu", .read_bytes = bytes_of(gate) + bytes_of(up)}; });
  static constexpr Bodies<decltype(reference::glu)> kBodies{reference::glu, cpu::glu, gpu::glu};
  return kBodies.of(exec)(exec, gate, up, args);
}

}  // namespace pagoda
