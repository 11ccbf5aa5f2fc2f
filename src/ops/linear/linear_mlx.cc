// MLX's products choose their kernels by shape. On a CPU all of them sum an element alone, in one
// order; on Apple GPUs they split k by the number of rows, so there linear.metal stands in.
#include <mlx/ops.h>

#include <algorithm>

#include "backend/mlx/metal_kernel.h"
#include "backend/mlx/mlx_exec.h"
#include "backend/mlx/mlx_weight.h"
#include "ops/linear/linear.h"
#include "ops/metal_bodies.h"

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

// The same on an Apple GPU, of `dtype`.
mx::array product_on_gpu(const mx::array& x, const WeightSegment& segment, mx::Dtype dtype) {
  static const MetalKernel kernel =
      make_metal_kernel("pagoda_linear", {"x", "w", "codes", "scales", "offsets"}, kLinearMetal);
  constexpr int kNumGroups = 2;  // SIMD groups of a threadgroup
  constexpr int kNumCols = 4;    // columns of a SIMD group
  constexpr int kMaxRows = 8;    // that the registers hold
  int rows = 1;
  while (rows < kMaxRows && rows < x.shape(0)) rows *= 2;
  const bool is_affine = segment.bits != 0;
  const mx::array none = mx::zeros({1, 1});
  const mx::array no_codes = mx::zeros({1, 1}, mx::uint32);
  const auto cols = static_cast<int>(segment.rows);
  const auto groups_of = [](int count, int size) { return (count + size - 1) / size; };
  return run_metal_kernel(
      kernel,
      {.inputs = {x, is_affine ? none : segment.values, is_affine ? segment.values : no_codes,
                  is_affine ? *segment.scales : none, is_affine ? *segment.biases : none},
       .shape = {x.shape(0), cols},
       .dtype = dtype,
       .num_threads = 32 * kNumGroups,
       .num_groups_x = groups_of(cols, kNumGroups * kNumCols),
       .num_groups_y = groups_of(x.shape(0), rows),
       .constants = {{"Out", dtype},
                     {"ROWS", rows},
                     {"NUM_COLS", kNumCols},
                     {"NUM_GROUPS", kNumGroups},
                     {"BITS", segment.bits},
                     {"GROUP_SIZE", std::max(segment.group_size, 1)}}});
}

}  // namespace

Tensor linear(Exec& exec, const Tensor& x, const Weight& weight, const LinearArgs& args) {
  const DType dtype = args.out_float32 ? DType::kFloat32 : x.dtype();
  return mlx_exec(exec).build("linear", dtype, {x.extent(0), weight.rows}, [&] {
    const mx::array input = array_of(x);
    const mx::Dtype product_dtype = args.bias.defined() ? mx::float32 : to_mlx(dtype);
    std::vector<mx::array> products;
    for (const WeightSegment& segment : mlx_weight(weight).segments) {
      products.push_back(mlx_exec(exec).uses_metal_kernels()
                             ? product_on_gpu(input, segment, product_dtype)
                             : product(input, segment));
    }
    mx::array result = products.size() == 1 ? products[0] : mx::concatenate(std::move(products), 1);
    if (args.bias.defined()) result = mx::add(result, array_of(args.bias));
    return mx::astype(result, to_mlx(dtype));
  });
}

}  // namespace pagoda::mlx
