#include "backend/reference/reference_weight.h"
#include "ops/linear/linear.h"

namespace pagoda::reference {
namespace {

// Computes a dot product with four independent sums. The code is still simple, and a golden test of
// a real model takes a third of the time.
double dot(const float* x, const float* w, std::int64_t cols) {
  double sums[4] = {};
  std::int64_t k = 0;
  for (; k + 4 <= cols; k += 4) {
    for (int i = 0; i < 4; ++i) sums[i] += double{x[k + i]} * w[k + i];
  }
  for (; k < cols; ++k) sums[0] += double{x[k]} * w[k];
  return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

}  // namespace

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  const std::int64_t tokens = x.extent(0);
  Tensor out = exec.allocate(DType::kFloat32, {tokens, weight.rows});
  const Tensor row_values = exec.allocate(DType::kFloat32, {weight.cols});
  for (std::int64_t j = 0; j < weight.rows; ++j) {
    packed(weight).read_row(j, row_values.data<float>());
    const double bias = args.bias.defined() ? args.bias.data<float>()[j] : 0.0;
    for (std::int64_t t = 0; t < tokens; ++t) {
      const double product =
          dot(x.data<float>() + t * x.stride(0), row_values.data<float>(), weight.cols);
      out.data<float>()[t * weight.rows + j] = static_cast<float>(product + bias);
    }
  }
  return out;
}

}  // namespace pagoda::reference
