#include "ops/add_rms_norm/add_rms_norm.h"

namespace pagoda::reference {

AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const RmsNormArgs& args) {
  Tensor sum = exec.allocate(DType::kFloat32, x.shape());
  for (std::int64_t i = 0; i < x.num_elements(); ++i) {
    sum.data<float>()[i] = x.data<float>()[i] + delta.data<float>()[i];
  }
  Tensor normed = reference::rms_norm(exec, sum, weight, args);
  return {std::move(sum), std::move(normed)};
}

}  // namespace pagoda::reference
