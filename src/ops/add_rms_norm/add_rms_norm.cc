#include "ops/add_rms_norm/add_rms_norm.h"

#include <fmt/format.h>

#include <utility>

#include "ops/check_tensor.h"

namespace pagoda {

AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const AddRmsNormArgs& args) {
  PAGODA_CHECK(x.shape().rank() == 2 && x.is_contiguous(),
               fmt::format("[add_rms_norm] x: expected contiguous [tokens, dim], got {}",
                           to_string(x.shape())));
  check_tensor("add_rms_norm", "delta", delta, x.dtype(), x.shape());
  for (const auto& [name, norm] :
       {std::pair("weight", &weight), {"delta_norm", &args.delta_norm}}) {
    if (norm->defined()) check_tensor("add_rms_norm", name, *norm, DType::kFloat32, {x.extent(1)});
  }
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "add_rms_norm", .read_bytes = bytes_of(x) + bytes_of(delta)};
  });
  static constexpr Bodies<decltype(reference::add_rms_norm)> kBodies{
      reference::add_rms_norm, cpu::add_rms_norm, gpu::add_rms_norm};
  return kBodies.of(exec)(exec, x, delta, weight, args);
}

}  // namespace pagoda
