#include "ops/soft_cap/soft_cap.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor soft_cap(Exec& exec, const Tensor& x, const SoftCapArgs& args) {
  PAGODA_CHECK(
      x.shape().rank() == 2 && x.is_contiguous(),
      fmt::format("[soft_cap] x: expected contiguous [rows, dim], got {}", to_string(x.shape())));
  check_tensor("soft_cap", "x", x, DType::kFloat32, x.shape());
  PAGODA_CHECK(args.cap > 0, fmt::format("[soft_cap] cap: expected more than 0, got {}", args.cap));
  const OpTimer timer(exec, [&] { return OpCall{.op = "soft_cap", .read_bytes = bytes_of(x)}; });
  static constexpr Bodies<decltype(reference::soft_cap)> kBodies{reference::soft_cap, cpu::soft_cap,
                                                                 gpu::soft_cap};
  return kBodies.of(exec)(exec, x, args);
}

}  // namespace pagoda
