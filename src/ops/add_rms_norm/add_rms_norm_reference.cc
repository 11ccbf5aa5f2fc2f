#include "ops/add_rms_norm/add_rms_norm.h"

namespace pagoda::reference {

AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const AddRmsNormArgs& args) {
  const RmsNormArgs norm = {.eps = args.eps};
  const Tensor added =
      args.delta_norm.defined() ? reference::rms_norm(exec, delta, args.delta_norm, norm) : delta;
  Tensor sum = exec.allocate(DType::kFloat32, x.shape());
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    sum.data<float>()[i] =
        (x.data<float>()[i] + added.data<float>()[i] * args.delta_factor) * args.sum_factor;
  }
  Tensor normed = weight.defined() ? reference::rms_norm(exec, sum, weight, norm) : sum;
  return {std::move(sum), std::move(normed)};
}

}  // namespace pagoda::reference
