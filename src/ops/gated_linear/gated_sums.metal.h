// glu of the sums of gate and up that a threadgroup has computed, for gated_linear and
// expert_gated_linear.
#ifndef PAGODA_GATED_SUMS_METAL_H
#define PAGODA_GATED_SUMS_METAL_H

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
  return gated(gate, up, p.activation, p.alpha, p.limit);
}

// Writes what add_chunks() has summed for a panel of gate and its panel of up: the first `num_rows`
// rows of out.
template <int kRows>
inline void write_gated_chunks(threadgroup const float* shared, device const float* bias,
                               device float* out, constant LinearParameters& p, uint num_rows,
                               uint panel, uint simd_group, uint lane) {
  const uint num_chunks = (p.width + p.chunk - 1) / p.chunk;
  const uint column = 32 * panel + lane;
  for (uint row = simd_group; row < num_rows; row += num_chunks) {
    const float gate = sum_of_chunks<kRows, 2>(shared, num_chunks, int(row), lane);
    const float up = sum_of_chunks<kRows, 2>(shared, num_chunks, kRows + int(row), lane);
    if (column < p.cols) {
      out[size_t(row) * p.out_stride + column] = gated_sums(gate, up, bias, p, column);
    }
  }
}

// Writes what add_tile() has summed, where SIMD group 0 has the panel of gate and SIMD group 1 its
// panel of up: rows of out from `first_row` on, fewer than `num_rows`.
template <int kMatrixUnits>
inline void write_gated_tile(thread const float* sums, threadgroup float* shared,
                             device const float* bias, device float* out,
                             constant LinearParameters& p, uint num_rows, uint first_row,
                             uint panel, uint simd_group, uint lane) {
  if (kMatrixUnits != 0) {
    // A barrier follows the last reads of the codes, so their memory is free.
    threadgroup float* const ups = shared + Tile::codes();
#pragma unroll
    for (int i = 0; i < 32; ++i) {
      if (simd_group == 1) ups[32 * i + int(lane)] = sums[i];
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    const uint column = 32 * panel + lane;
#pragma unroll
    for (uint i = 0; i < 32; ++i) {
      if (simd_group == 0 && first_row + i < num_rows && column < p.cols) {
        out[size_t(first_row + i) * p.out_stride + column] =
            gated_sums(sums[i], ups[32 * i + lane], bias, p, column);
      }
    }
    return;
  }
#pragma unroll
  for (uint i = 0; i < 16; ++i) {
    const uint row = first_row + i / 2 * 4 + 2 * simd_group + lane / 16;
    const uint column = 32 * panel + i % 2 * 16 + lane % 16;
    const uint gate = i / 2 * 4 + i % 2;
    if (row < num_rows && column < p.cols) {
      out[size_t(row) * p.out_stride + column] =
          gated_sums(sums[gate], sums[gate + 2], bias, p, column);
    }
  }
}

#endif  // PAGODA_GATED_SUMS_METAL_H
