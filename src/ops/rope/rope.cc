#include "ops/rope/rope.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

void check_angles(std::string_view op, const Tensor& angles, std::int64_t num_tokens,
                  std::int64_t head_dim) {
  PAGODA_CHECK(angles.shape().rank() == 3,
               fmt::format("[{}] angles: expected [tokens, 2, pairs], got {}", op,
                           to_string(angles.shape())));
  const std::int64_t pairs = angles.extent(2);
  check_tensor(op, "angles", angles, DType::kFloat32, {num_tokens, 2, pairs});
  PAGODA_CHECK(
      is_rotary_width(2 * pairs, head_dim),
      fmt::format("[{}] angles: expected pairs of a head of {}, got {}", op, head_dim, pairs));
}

Tensor rope_angles(Exec& exec, const Tensor& positions, const Tensor& inv_freq,
                   const RopeAnglesArgs& args) {
  check_list("rope_angles", "positions", positions);
  PAGODA_CHECK(inv_freq.dtype() == DType::kFloat32 && inv_freq.shape().rank() == 1 &&
                   inv_freq.is_contiguous(),
               fmt::format("[rope_angles] inv_freq: expected [pairs] float32, got {} {}",
                           to_string(inv_freq.shape()), dtype_name(inv_freq.dtype())));
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "rope_angles", .read_bytes = bytes_of(positions)}; });
  static constexpr Bodies<decltype(reference::rope_angles)> kBodies{
      reference::rope_angles, cpu::rope_angles, gpu::rope_angles};
  return kBodies.of(exec)(exec, positions, inv_freq, args);
}

Tensor rope(Exec& exec, const Tensor& x, const Tensor& angles, const RopeArgs& args) {
  PAGODA_CHECK(x.shape().rank() == 3 && x.extent(2) % 2 == 0 && x.stride(2) == 1,
               fmt::format("[rope] x: expected [tokens, heads, an even head_dim], got {}",
                           to_string(x.shape())));
  check_angles("rope", angles, x.extent(0), x.extent(2));
  const OpTimer timer(
      exec, [&] { return OpCall{.op = "rope", .read_bytes = bytes_of(x) + bytes_of(angles)}; });
  static constexpr Bodies<decltype(reference::rope)> kBodies{reference::rope, cpu::rope, gpu::rope};
  return kBodies.of(exec)(exec, x, angles, args);
}

}  // namespace pagoda
