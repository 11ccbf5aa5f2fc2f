// How products by our kernels are dispatched on Metal: linear's, and gated_linear's.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/mlx/metal_launch.h"
#include "backend/mlx/mlx_weight.h"
#include "tensor/exec.h"

namespace pagoda::mlx {

// The kernels of an op, each for a format: of few rows, and of any number.
struct ProductKernels {
  const MetalSource* source = nullptr;
  std::string_view few;
  std::string_view many;
  int panels = 1;  // that a threadgroup of `few` multiplies: 2 where they are interleaved
};

// A segment's product: x is input 0, out is output 0.
struct SegmentProduct {
  const WeightSegment& segment;
  MetalOperand panels;
  MetalOperand bias;
  bool has_bias = false;
  std::int64_t out_stride = 0;
  std::int64_t out_column = 0;
  bool is_gelu = false;  // of gated_linear, else silu
};

// Returns the dispatch of a segment's product with x [tokens, cols].
MetalDispatch product_dispatch(const Exec& exec, const ProductKernels& kernels,
                               const SegmentProduct& product, const Tensor& x);

// Returns the k of a chunk, whose totals are added up one after the other (product.metal.h).
std::int64_t product_chunk(const PanelFormat& format, std::int64_t cols);

}  // namespace pagoda::mlx
