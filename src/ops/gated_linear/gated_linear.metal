// The product of x and a weight in which panels of gate and of up alternate, and then glu of both
// (ops/linear/product.metal.h has the arithmetic).
#include "backend/mlx/kernel.metal.h"
#include "ops/glu/gated.metal.h"
#include "ops/linear/few_rows.metal.h"
#include "ops/linear/many_rows.metal.h"

// Returns glu of a sum of gate and one of up, with their biases added.
inline float gated_sums(float gate, float up, device const float* bias,
                        constant LinearParameters& p, uint column) {
  if (p.has_bias != 0) {
    gate += bias[column];
    up += bias[p.cols + column];
  }
  return gated(gate, up, p.is_gelu != 0);
}

// Multiplies at most kRows rows. A threadgroup takes a panel of gate and its panel of up, and each
// SIMD group takes one chunk of k of both.
template <typename Name, int kBits, int kGroup, typename Number, int kRows>
[[kernel]] void gated_linear_few(device const float* x [[buffer(0)]],
                                 device const uint* panels [[buffer(1)]],
                                 device const float* bias [[buffer(2)]],
                                 device float* out [[buffer(3)]],
                                 constant LinearParameters& p [[buffer(4)]],
                                 threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  add_chunks<Panels<Name, kBits, kGroup, Number>, kRows, 2>(
      x, panels + size_t(group.x) * p.panel_stride, p, shared, simd_group, lane);
  const uint num_chunks = (p.width + p.chunk - 1) / p.chunk;
  const uint column = 32 * group.x + lane;
  for (uint row = simd_group; row < p.rows; row += num_chunks) {
    const float gate = sum_of_chunks<kRows, 2>(shared, num_chunks, int(row), lane);
    const float up = sum_of_chunks<kRows, 2>(shared, num_chunks, kRows + int(row), lane);
    if (column < p.cols) {
      out[size_t(row) * p.out_stride + column] = gated_sums(gate, up, bias, p, column);
    }
  }
}

// Multiplies any number of rows. A threadgroup takes 32 rows of 32 columns: SIMD group 0 unpacks
// the panel of gate, SIMD group 1 that of up.
template <typename Name, int kBits, int kGroup, typename Number, int kMatrixUnits>
[[kernel]] void gated_linear_many(device const float* x [[buffer(0)]],
                                  device const uint* panels [[buffer(1)]],
                                  device const float* bias [[buffer(2)]],
                                  device float* out [[buffer(3)]],
                                  constant LinearParameters& p [[buffer(4)]],
                                  threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  device const uint* const panel =
      panels + size_t(group.y) * p.panel_stride + size_t(simd_group) * p.panel_words;
  const uint first_row = 32 * group.x;
  float sums[32] = {};
  add_tile<Panels<Name, kBits, kGroup, Number>, kMatrixUnits>(x, panel, p, first_row, shared,
                                                              simd_group, lane, sums);
  if (kMatrixUnits != 0) {
    // A barrier follows the last reads of the codes, so their memory is free.
    threadgroup float* const ups = shared + Tile::codes();
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (simd_group == 1) ups[32 * i + int(lane)] = sums[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint column = 32 * group.y + lane;
#pragma unroll
    for (uint i = 0; i < 32; ++i) {
      if (simd_group == 0 && first_row + i < p.rows && column < p.cols) {
        out[size_t(first_row + i) * p.out_stride + column] =
            gated_sums(sums[i], ups[32 * i + lane], bias, p, column);
      }
    }
    return;
  }
#pragma unroll
  for (uint i = 0; i < 16; ++i) {
    const uint row = first_row + i / 2 * 4 + 2 * simd_group + lane / 16;
    const uint column = 32 * group.y + i % 2 * 16 + lane % 16;
    const uint gate = i / 2 * 4 + i % 2;
    if (row < p.rows && column < p.cols) {
      out[size_t(row) * p.out_stride + column] =
          gated_sums(sums[gate], sums[gate + 2], bias, p, column);
    }
  }
}
