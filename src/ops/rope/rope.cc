#include "ops/rope/rope.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq) {
  check_list("rope_angles", "positions", positions);
  PAGODA_CHECK(inv_freq.dtype() == DType::kFloat32 && inv_freq.shape().rank() == 1 &&
                   inv_freq.is_contiguous(),
               fmt::format("[rope_angles] inv_freq: expected [head_dim / 2] float32, got {} {}",
                           to_string(inv_freq.shape()), dtype_name(inv_freq.dtype())));
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "rope_angles", .read_bytes = bytes_of(positions)}; });
  static constexpr Bodies<decltype(reference::rope_angles)> kBodies{
      reference::rope_angles, cpu::rope_angles, mlx::rope_angles, cuda::rope_angles};
  return kBodies.of(exec)(exec, positions, inv_freq);
}

Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args) {
  PAGODA_CHECK(x.shape().rank() == 3 && x.extent(2) % 2 == 0 && x.stride(2) == 1,
               fmt::format("[rope] x: expected [tokens, heads, an even head_dim], got {}",
                           to_string(x.shape())));
  check_tensor("rope", "angles", angles, DType::kFloat32, {x.extent(0), 2, x.extent(2) / 2});
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "rope", .read_bytes = bytes_of(x) + bytes_of(angles)}; });
  static constexpr Bodies<decltype(reference::rope)> kBodies{reference::rope, cpu::rope, mlx::rope,
                                                             cuda::rope};
  return kBodies.of(exec)(exec, x, angles, args);
}

}  // namespace pagoda
