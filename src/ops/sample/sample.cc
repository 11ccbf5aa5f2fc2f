#include "ops/sample/sample.h"

#include "ops/check_tensor.h"

namespace pagoda {

Tensor sample(Exec& exec, const Tensor& logits, const SampleArgs& args) {
  check_float32_logits("sample", logits);
  check_weighed_vocabulary("sample", logits);
  check_tensor("sample", "inverse_temperature", args.inverse_temperature, DType::kFloat32,
               {logits.extent(0)});
  check_tensor("sample", "uniforms", args.uniforms, DType::kInt32, {logits.extent(0), 2});
  if (args.filters != nullptr) check_row_filters("sample", logits, *args.filters);
  const OpTimer timer(exec, [&] { return OpCall{.op = "sample", .read_bytes = bytes_of(logits)}; });
  static constexpr Bodies<decltype(reference::sample)> kBodies{reference::sample, cpu::sample,
                                                               gpu::sample};
  return kBodies.of(exec)(exec, logits, args);
}

}  // namespace pagoda
