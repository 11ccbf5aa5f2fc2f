// The arithmetic of products, the same for few rows and for many, and the loads of x.
//
// out[row, column] is a function of the row of x and the column's weights alone. It is the same
// whichever kernel computes it, and whatever else is computed with it:
//
//   part  = fma(x[k], code[k], part) from zero, over the group's k in ascending order
//   total = fma(scale, part, fma(offset, sum of the group's x, total)), over ascending groups;
//           fma(scale, part, total) where no code has an offset, total + part in plain types
//   sum   = sum + total from zero, over ascending chunks, each total from zero
//
// A chunk's length is a function of the width and the format. A group's x is summed in fours,
// ((x[0] + x[1]) + x[2]) + x[3]. In runs of 32 k fours are added pairwise; runs are added from left
// to right.
#ifndef PAGODA_PRODUCT_METAL_H
#define PAGODA_PRODUCT_METAL_H

#include "ops/linear/linear_metal.h"
#include "ops/linear/panels.metal.h"

// The rows of x that a threadgroup multiplies: the first `count`.
struct FirstRows {
  uint count;
  uint source(uint row) const { return row; }  // the row of x
};

// Returns x[row, k .. k + 3], with zeros beyond the last row and column. k is a multiple of four.
template <typename Rows>
inline float4 load_x(device const float* x, constant LinearParameters& p, Rows rows, uint row,
                     uint k) {
  float4 values;
  values.x = 0;
  values.y = 0;
  values.z = 0;
  values.w = 0;
  if (row < rows.count) {
    device const float* const from = x + size_t(rows.source(row)) * p.x_stride + k;
    if (p.x_is_aligned != 0 && k + 4 <= p.width) {
      values = *(device const float4*)from;
    } else {
      if (k < p.width) values.x = from[0];
      if (k + 1 < p.width) values.y = from[1];
      if (k + 2 < p.width) values.z = from[2];
      if (k + 3 < p.width) values.w = from[3];
    }
  }
  return values;
}

// Returns the sum of a run of 16 or 32 k. 4 or 8 neighbouring lanes hold the run, four k each.
template <int kRun>
inline float sum_of_run(float4 values) {
  float sum = ((values.x + values.y) + values.z) + values.w;
  sum += simd_shuffle_xor(sum, ushort(1));
  sum += simd_shuffle_xor(sum, ushort(2));
  if (kRun == 32) sum += simd_shuffle_xor(sum, ushort(4));
  return sum;
}

// Returns `total` after a group's part, with its scale and offset, is added.
template <typename P>
inline float with_group(float total, float part, GroupNumbers numbers, float sum_of_x) {
  if (P::is_plain()) return total + part;
  if (P::Format::has_offset()) total = fma(numbers.offset, sum_of_x, total);
  return fma(numbers.scale, part, total);
}

// Writes the levels that code_number() reads, with the first lanes of SIMD group 0. A barrier must
// follow.
template <typename P>
inline void write_levels(threadgroup float* levels, uint simd_group, uint lane) {
  if (P::Format::has_levels() && simd_group == 0 && lane < 16) {
    levels[lane] = level_of(typename P::Format(), lane);
  }
}

#endif  // PAGODA_PRODUCT_METAL_H
