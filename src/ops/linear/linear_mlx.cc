#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "backend/mlx/mlx_weight.h"
#include "ops/linear/linear.h"

namespace pagoda::mlx {
namespace {

// x [tokens, cols] as the product's operand. A product's operands share a type, and widening a
// 16-bit weight would write and read it anew each step, so x is rounded to the weight's type.
mx::array operand(const mx::array& x, mx::Dtype dtype) {
  if (dtype != mx::float16) return mx::astype(x, dtype);
  // float16 ends at 65,504, and an activation of some checkpoints doesn't: better the largest
  // number than infinity.
  constexpr float kLargest = 65504.0f;
  return mx::astype(mx::clip(x, mx::array(-kLargest), mx::array(kLargest)), mx::float16);
}

// [tokens, segment.rows] float32
mx::array product(const mx::array& x, const WeightSegment& segment) {
  if (segment.bits != 0) {
    return mx::quantized_matmul(mx::astype(x, mx::float32), segment.values, *segment.scales,
                                segment.biases,
                                /*transpose=*/true, segment.group_size, segment.bits);
  }
  const mx::array result =
      mx::matmul(operand(x, segment.values.dtype()), mx::transpose(segment.values));
  return mx::astype(result, mx::float32);
}

}  // namespace

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  const DType dtype = args.out_float32 ? DType::kFloat32 : x.dtype();
  return mlx_exec(exec).build("linear", dtype, {x.extent(0), weight.rows}, [&] {
    const mx::array input = array_of(x);
    std::vector<mx::array> products;
    for (const WeightSegment& segment : mlx_weight(weight).segments)
      products.push_back(product(input, segment));
    mx::array result = products.size() == 1 ? products[0] : mx::concatenate(std::move(products), 1);
    if (args.bias.defined()) result = mx::add(result, array_of(args.bias));
    return mx::astype(result, to_mlx(dtype));
  });
}

}  // namespace pagoda::mlx
