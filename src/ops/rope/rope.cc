#include "ops/rope/rope.h"

#include <fmt/format.h>

namespace pagoda {

Tensor rope(Exec& exec, const Tensor& x, const Tensor& positions, const Tensor& inv_freq,
            const RopeArgs& args) {
  PAGODA_CHECK(x.shape().rank() == 3 && x.extent(2) % 2 == 0 && x.stride(2) == 1,
               fmt::format("[rope] x: expected [tokens, heads, an even head_dim], got {}",
                           to_string(x.shape())));
  PAGODA_CHECK(positions.dtype() == DType::kInt32 && positions.shape() == Shape{x.extent(0)},
               fmt::format("[rope] positions: expected {} int32, got {} {}", x.extent(0),
                           to_string(positions.shape()), dtype_name(positions.dtype())));
  PAGODA_CHECK(inv_freq.dtype() == DType::kFloat32 && inv_freq.shape() == Shape{x.extent(2) / 2},
               fmt::format("[rope] inv_freq: expected {} float32, got {} {}", x.extent(2) / 2,
                           to_string(inv_freq.shape()), dtype_name(inv_freq.dtype())));
  const OpTimer timer(exec, [&] { return OpCall{.op = "rope", .read_bytes = bytes_of(x)}; });
  static constexpr Bodies<decltype(reference::rope)> kBodies{reference::rope, cpu::rope, mlx::rope,
                                                             cuda::rope};
  return kBodies.of(exec)(exec, x, positions, inv_freq, args);
}

}  // namespace pagoda
