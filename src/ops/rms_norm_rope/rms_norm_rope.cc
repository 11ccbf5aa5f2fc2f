#include "ops/rms_norm_rope/rms_norm_rope.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor rms_norm_rope(Exec& exec, const Tensor& x, const Tensor& weight, const Tensor& angles,
                     const RmsNormRopeArgs& args) {
  PAGODA_CHECK(x.shape().rank() == 3 && x.extent(2) % 2 == 0 && x.stride(2) == 1,
               fmt::format("[rms_norm_rope] x: expected [tokens, heads, an even head_dim], got {}",
                           to_string(x.shape())));
  check_tensor("rms_norm_rope", "weight", weight, DType::kFloat32, {x.extent(2)});
  check_angles("rms_norm_rope", angles, x.extent(0), x.extent(2));
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "rms_norm_rope", .read_bytes = bytes_of(x) + bytes_of(angles)};
  });
  static constexpr Bodies<decltype(reference::rms_norm_rope)> kBodies{
      reference::rms_norm_rope, cpu::rms_norm_rope, gpu::rms_norm_rope};
  return kBodies.of(exec)(exec, x, weight, angles, args);
}

}  // namespace pagoda
