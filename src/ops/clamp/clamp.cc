#include "ops/clamp/clamp.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor clamp(Exec& exec, const Tensor& x, const ClampArgs& args) {
  PAGODA_CHECK(
      x.shape().rank() == 2 && x.stride(-1) == 1 && x.dtype() == DType::kFloat32,
      fmt::format("[clamp] x: expected [rows, dim] of float32, got {}", to_string(x.shape())));
  PAGODA_CHECK(args.limit > 0,
               fmt::format("[clamp] limit: expected more than 0, got {}", args.limit));
  const OpTimer timer(exec, [&] { return OpCall{.op = "clamp", .read_bytes = bytes_of(x)}; });
  static constexpr Bodies<decltype(reference::clamp)> kBodies{reference::clamp, cpu::clamp,
                                                              gpu::clamp};
  return kBodies.of(exec)(exec, x, args);
}

}  // namespace pagoda
