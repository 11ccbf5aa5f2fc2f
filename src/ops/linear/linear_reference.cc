#include "backend/reference/reference_weight.h"
#include "ops/linear/linear.h"

namespace pagoda::reference {

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  const std::int64_t tokens = x.extent(0);
  Tensor out = exec.allocate(DType::kFloat32, {tokens, weight.rows});
  const Tensor row_values = exec.allocate(DType::kFloat32, {weight.cols});
  const float* w = row_values.data<float>();
  for (std::int64_t j = 0; j < weight.rows; ++j) {
    packed(weight).read_row(j, row_values.data<float>());
    const double bias = args.bias.defined() ? args.bias.data<float>()[j] : 0.0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const float* from = x.data<float>() + t * x.stride(0);
      double sum = 0;
      for (std::int64_t k = 0; k < weight.cols; ++k) sum += double{from[k]} * w[k];
      out.data<float>()[t * weight.rows + j] = static_cast<float>(sum + bias);
    }
  }
  return out;
}

}  // namespace pagoda::reference
