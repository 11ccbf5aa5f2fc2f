#include "ops/rms_norm/rms_norm.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor rms_norm(Exec& exec, const Tensor& x, const Tensor& weight, const RmsNormArgs& args) {
  const int rank = x.shape().rank();
  PAGODA_CHECK((rank == 2 || rank == 3) && x.stride(-1) == 1,
               fmt::format("[rms_norm] x: expected [rows, dim] or [tokens, heads, dim], got {}",
                           to_string(x.shape())));
  check_tensor("rms_norm", "weight", weight, DType::kFloat32, {x.extent(-1)});
  const OpTimer timer(exec, [&] { return OpCall{.op = "rms_norm", .read_bytes = bytes_of(x)}; });
  static constexpr Bodies<decltype(reference::rms_norm)> kBodies{reference::rms_norm, cpu::rms_norm,
                                                                 gpu::rms_norm};
  return kBodies.of(exec)(exec, x, weight, args);
}

}  // namespace pagoda
