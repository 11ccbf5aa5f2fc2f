// The product of x and a segment of a weight (product.metal.h has the arithmetic).
#include "backend/mlx/kernel.metal.h"
#include "ops/linear/few_rows.metal.h"
#include "ops/linear/many_rows.metal.h"

inline float bias_of(device const float* bias, constant LinearParameters& p, uint column) {
  return p.has_bias != 0 ? bias[p.out_column + column] : 0.0f;
}

// Multiplies at most kRows rows. Each threadgroup takes a panel, and each of its SIMD groups a
// chunk.
template <typename Name, int kBits, int kGroup, typename Number, int kRows>
[[kernel]] void linear_few(device const float* x [[buffer(0)]],
                           device const uint* panels [[buffer(1)]],
                           device const float* bias [[buffer(2)]], device float* out [[buffer(3)]],
                           constant LinearParameters& p [[buffer(4)]],
                           threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  add_chunks<Panels<Name, kBits, kGroup, Number>, kRows, 1>(
      x, panels + size_t(group.x) * p.panel_stride, p, shared, simd_group, lane);
  const uint num_chunks = (p.width + p.chunk - 1) / p.chunk;
  const uint column = 32 * group.x + lane;
  for (uint row = simd_group; row < p.rows; row += num_chunks) {
    const float sum = sum_of_chunks<kRows, 1>(shared, num_chunks, int(row), lane);
    if (column < p.cols) {
      out[size_t(row) * p.out_stride + p.out_column + column] =
          p.has_bias != 0 ? sum + bias_of(bias, p, column) : sum;
    }
  }
}

// Multiplies any number of rows. Each threadgroup computes 32 rows of 64 columns.
template <typename Name, int kBits, int kGroup, typename Number, int kMatrixUnits>
[[kernel]] void linear_many(device const float* x [[buffer(0)]],
                            device const uint* panels [[buffer(1)]],
                            device const float* bias [[buffer(2)]], device float* out [[buffer(3)]],
                            constant LinearParameters& p [[buffer(4)]],
                            threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const uint last_panel = (p.cols - 1) / 32;
  const uint panel = min(2 * group.y + simd_group, last_panel);
  const uint first_row = 32 * group.x;
  float sums[32] = {};
  add_tile<Panels<Name, kBits, kGroup, Number>, kMatrixUnits>(
      x, panels + size_t(panel) * p.panel_stride, p, first_row, shared, simd_group, lane, sums);
#pragma unroll
  for (uint i = 0; i < 32; ++i) {
    const uint row = first_row + (kMatrixUnits != 0 ? i : i / 4 * 4 + 2 * simd_group + lane / 16);
    const uint column =
        64 * group.y + (kMatrixUnits != 0 ? 32 * simd_group + lane : i % 4 * 16 + lane % 16);
    if (row < p.rows && column < p.cols) {
      out[size_t(row) * p.out_stride + p.out_column + column] =
          p.has_bias != 0 ? sums[i] + bias_of(bias, p, column) : sums[i];
    }
  }
}
