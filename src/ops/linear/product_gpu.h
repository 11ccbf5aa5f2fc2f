// The dispatches of our kernels for products on Metal: of linear and gated_linear, and of a
// mixture's experts.
#pragma once

#include <cstdint>
#include <string_view>

#include "backend/gpu/gpu_launch.h"
#include "backend/gpu/gpu_weight.h"
#include "ops/glu/activation.h"
#include "tensor/exec.h"

namespace pagoda::gpu {

// The kernels of an op, one for few rows and one for any number. Both are templates over formats.
struct ProductKernels {
  const GpuSource* source = nullptr;
  std::string_view few;
  std::string_view many;
  int panels = 1;  // multiplied by a threadgroup of `few`: 2 if they are interleaved
};

// A segment's product: x is input 0, out is output 0.
struct SegmentProduct {
  const WeightSegment& segment;
  GpuOperand panels;
  GpuOperand bias;
  bool has_bias = false;
  std::int64_t out_stride = 0;
  std::int64_t out_column = 0;
  GluArgs glu = {};  // for gated_linear alone
};

// Returns the dispatch of a segment's product with `num_rows` rows of x [.., cols].
GpuDispatch product_dispatch(const Exec& exec, const ProductKernels& kernels,
                             const SegmentProduct& product, const Tensor& x, std::int64_t num_rows);

// Returns whether a product of so many rows takes the kernel for few rows.
bool takes_few_rows(const Exec& exec, std::int64_t num_rows);
inline constexpr int kFewRows = 4;    // the most rows of the kernel for few
inline constexpr int kTileRows = 32;  // of a threadgroup of the other kernel

// Returns the number of k in a chunk. Totals of chunks are added up in order (product.metal.h).
std::int64_t product_chunk(const PanelFormat& format, std::int64_t cols);

}  // namespace pagoda::gpu
