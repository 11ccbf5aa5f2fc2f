// The dispatches of our kernels for products on Metal, in linear and in gated_linear.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/mlx/metal_launch.h"
#include "backend/mlx/mlx_weight.h"
#include "tensor/exec.h"

namespace pagoda::mlx {

// The kernels of an op, one for few rows and one for any number. Both are templates over formats.
struct ProductKernels {
  const MetalSource* source = nullptr;
  std::string_view few;
  std::string_view many;
  int panels = 1;  // multiplied by a threadgroup of `few`: 2 if they are interleaved
};

// A segment's product: x is input 0, out is output 0.
struct SegmentProduct {
  const WeightSegment& segment;
  MetalOperand panels;
  MetalOperand bias;
  bool has_bias = false;
  std::int64_t out_stride = 0;
  std::int64_t out_column = 0;
  bool is_gelu = false;  // for gated_linear alone; false: silu
};

// Returns the dispatch of a segment's product with x [tokens, cols].
MetalDispatch product_dispatch(const Exec& exec, const ProductKernels& kernels,
                               const SegmentProduct& product, const Tensor& x);

// Returns the number of k in a chunk. Totals of chunks are added up in order (product.metal.h).
std::int64_t product_chunk(const PanelFormat& format, std::int64_t cols);

}  // namespace pagoda::mlx
