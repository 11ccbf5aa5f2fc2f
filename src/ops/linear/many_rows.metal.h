// Products of more rows: a threadgroup computes 32 rows of 64 columns, which are two panels.
//
// Two SIMD groups process k in blocks of 32. Each thread unpacks the codes of one column into
// threadgroup memory, as floats, while the next block is being loaded. Then matrix units or lanes
// add products to parts, and after each group of k lanes add the parts to totals:
// - Matrix units (kMatrixUnits): the parts of a SIMD group are 32 x 32, in matrices of 8 x 8. A
//   lane adds up the column whose codes it has unpacked. Eights of rows beyond the last row are
//   skipped.
// - Lanes: a thread has 8 rows, 4 apart, times 4 columns, 16 apart.
#ifndef PAGODA_MANY_ROWS_METAL_H
#define PAGODA_MANY_ROWS_METAL_H

#include "ops/linear/product.metal.h"

// Places of a tile's arrays in `shared`, one after the other:
//
//   levels   [16]
//   x        [32][36]
//   codes    [64][36] for lanes, [32][68] for matrix units
//   scales   [2][64], of each group
//   offsets  [2][64], of each group
//   sums     [2][32], each group's sums of x
//   parts    [2][8][32], written by matrix units
struct Tile {
  static constexpr int x() { return 16; }
  static constexpr int x_stride() { return 36; }
  static constexpr int codes() { return x() + 32 * x_stride(); }
  static constexpr int codes_stride(bool for_units) { return for_units ? 68 : 36; }
  static constexpr int scales() { return codes() + 64 * 36; }
  static constexpr int offsets() { return scales() + 128; }
  static constexpr int sums() { return offsets() + 128; }
  static constexpr int parts() { return sums() + 64; }
};

// A thread's share of the next block, in registers: the codes of its column, and four k of four
// rows of x. Thread i has the four k from 4 (i % 8) on of the tile's rows i / 8 + 8 j.
template <typename P>
struct NextBlock {
  uint low[P::low()];
  uint high[P::high() > 0 ? P::high() : 1];
  float4 x[4];
  PanelHeader header;  // of the unit that the block is in
};

// Loads the block at k. With a unit's first block, it loads the unit's header too.
template <typename P, typename Rows>
inline void load_next(device const float* x, device const uint* panel, constant LinearParameters& p,
                      Rows rows, uint first_row, uint k, uint simd_group, uint lane,
                      thread NextBlock<P>& next) {
  const uint in_unit = k % uint(P::unit());
  device const uint* const unit = panel + size_t(k / uint(P::unit())) * uint(P::unit_words());
  const int num_k = min(int(p.width - (k - in_unit)), P::unit());
  const int blocks = (num_k + 31) / 32;
  if (in_unit == 0) load_header<P>(unit, blocks, lane, next.header);
  load_block<P>(unit, blocks, int(in_unit / 32), num_k - int(in_unit), lane, next.low, next.high);
  const uint row = first_row + 4 * simd_group + lane / 8;
  const uint k_of_lane = k + 4 * (lane % 8);
  const bool is_inside = p.x_is_aligned != 0 && k + 32 <= p.width && first_row + 32 <= rows.count;
  if (is_inside) {  // the usual case, and the same for all lanes: no bounds to check
#pragma unroll
    for (int j = 0; j < 4; ++j) {
      const size_t source = rows.source(row + 8 * uint(j));
      next.x[j] = *(device const float4*)(x + source * p.x_stride + k_of_lane);
    }
    return;
  }
#pragma unroll
  for (int j = 0; j < 4; ++j) next.x[j] = load_x(x, p, rows, row + 8 * uint(j), k_of_lane);
}

// Writes a block's x, and the sums of its groups' x so far, to `shared`. runs [4]: these sums
template <typename P>
inline void stage_x(thread const NextBlock<P>& next, uint k, uint simd_group, uint lane,
                    threadgroup float* shared, thread float* runs) {
  constexpr int kGroup = P::group();
  threadgroup float* const sums = shared + Tile::sums();
  const int row = int(4 * simd_group + lane / 8);
  const int k_of_lane = 4 * int(lane % 8);
#pragma unroll
  for (int j = 0; j < 4; ++j) {
    const float4 values = next.x[j];
    *(threadgroup float4*)(shared + Tile::x() + (row + 8 * j) * Tile::x_stride() + k_of_lane) =
        values;
    if (P::Format::has_offset()) {
      const float sum = sum_of_run < kGroup == 16 ? 16 : 32 > (values);
      runs[j] = kGroup <= 32 || k % uint(kGroup) == 0 ? sum : runs[j] + sum;
      constexpr int kStep = kGroup == 16 ? 16 : 32;
      if (k_of_lane % kStep == 0) sums[32 * (k_of_lane / kStep) + row + 8 * j] = runs[j];
    }
  }
}

// Writes a column's codes of a block.
template <typename P, bool kForUnits>
inline void stage_codes(thread const NextBlock<P>& next, uint column, threadgroup float* shared) {
  constexpr int kStride = Tile::codes_stride(kForUnits);
  threadgroup float* const codes = shared + Tile::codes();
#pragma unroll
  for (int k = 0; k < 32; k += 4) {
    float4 values;
    values.x = code_number<P>(next.low, next.high, k, shared);
    values.y = code_number<P>(next.low, next.high, k + 1, shared);
    values.z = code_number<P>(next.low, next.high, k + 2, shared);
    values.w = code_number<P>(next.low, next.high, k + 3, shared);
    if (kForUnits) {
      codes[kStride * k + int(column)] = values.x;
      codes[kStride * (k + 1) + int(column)] = values.y;
      codes[kStride * (k + 2) + int(column)] = values.z;
      codes[kStride * (k + 3) + int(column)] = values.w;
    } else {
      *(threadgroup float4*)(codes + kStride * int(column) + k) = values;
    }
  }
}

// Returns whether a group ends at k + end; a span of the block at k ends there.
template <typename P>
inline bool group_ends(uint k, int end, uint width) {
  return (k + uint(end)) % uint(P::group()) == 0 || k + uint(end) >= width;
}

// Multiplies a span of a block on lanes. parts [8][4]
inline void multiply_by_lanes(threadgroup const float* shared, int first, int count,
                              uint simd_group, uint lane, thread float* parts) {
  threadgroup const float* const x =
      shared + Tile::x() + int(2 * simd_group + lane / 16) * Tile::x_stride();
  threadgroup const float* const codes =
      shared + Tile::codes() + int(lane % 16) * Tile::codes_stride(false);
#pragma unroll 2
  for (int k = first; k < first + count; k += 4) {
    float4 of_codes[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      of_codes[c] = *(threadgroup const float4*)(codes + 16 * c * Tile::codes_stride(false) + k);
    }
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      const float4 values = *(threadgroup const float4*)(x + 4 * r * Tile::x_stride() + k);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        float part = fma(values.x, of_codes[c].x, parts[4 * r + c]);
        part = fma(values.y, of_codes[c].y, part);
        part = fma(values.z, of_codes[c].z, part);
        parts[4 * r + c] = fma(values.w, of_codes[c].w, part);
      }
    }
  }
}

// Adds a group's parts to the totals. span: its index in the block, 0 or 1
template <typename P>
inline void fold_by_lanes(threadgroup const float* shared, int span, uint simd_group, uint lane,
                          thread float* parts, thread float* totals) {
#pragma unroll
  for (int c = 0; c < 4; ++c) {
    GroupNumbers numbers;
    numbers.scale = 1;
    numbers.offset = 0;
    const int column = 64 * span + 16 * c + int(lane % 16);
    if (!P::is_plain()) numbers.scale = shared[Tile::scales() + column];
    if (P::Format::has_offset()) numbers.offset = shared[Tile::offsets() + column];
#pragma unroll
    for (int r = 0; r < 8; ++r) {
      float sum_of_x = 0;
      if (P::Format::has_offset()) {
        sum_of_x = shared[Tile::sums() + 32 * span + 4 * r + int(2 * simd_group + lane / 16)];
      }
      totals[4 * r + c] = with_group<P>(totals[4 * r + c], parts[4 * r + c], numbers, sum_of_x);
      parts[4 * r + c] = 0;
    }
  }
}

// Multiplies a span on matrix units. parts [4][4]; `eights`: the number of eights of rows.
inline void multiply_by_units(threadgroup const float* shared, int first, int count, int eights,
                              uint simd_group, thread simdgroup_float8x8* parts) {
  threadgroup const float* const x = shared + Tile::x();
  threadgroup const float* const codes = shared + Tile::codes() + 32 * int(simd_group);
  for (int k = first; k < first + count; k += 8) {
    simdgroup_float8x8 right[4];
#pragma unroll
    for (int c = 0; c < 4; ++c) {
      simdgroup_load(right[c], codes + Tile::codes_stride(true) * k + 8 * c,
                     ulong(Tile::codes_stride(true)));
    }
#pragma unroll
    for (int r = 0; r < 4; ++r) {
      if (r < eights) {
        simdgroup_float8x8 left;
        simdgroup_load(left, x + 8 * r * Tile::x_stride() + k, ulong(Tile::x_stride()));
#pragma unroll
        for (int c = 0; c < 4; ++c) {
          simdgroup_multiply_accumulate(parts[4 * r + c], left, right[c], parts[4 * r + c]);
        }
      }
    }
  }
}

// Adds a group's parts to the totals. totals [32]: the rows of the lane's column
template <typename P>
inline void fold_by_units(threadgroup float* shared, int span, GroupNumbers numbers, int eights,
                          uint simd_group, uint lane, thread simdgroup_float8x8* parts,
                          thread float* totals) {
  threadgroup float* const strip = shared + Tile::parts() + 256 * int(simd_group);
  threadgroup const float* const sums = shared + Tile::sums() + 32 * span;
#pragma unroll
  for (int r = 0; r < 4; ++r) {
    if (r < eights) {
      simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
      for (int c = 0; c < 4; ++c) {
        simdgroup_store(parts[4 * r + c], strip + 8 * c, ulong(32));
        parts[4 * r + c] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
      }
      simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
      for (int i = 0; i < 8; ++i) {
        const float sum_of_x = P::Format::has_offset() ? sums[8 * r + i] : 0.0f;
        totals[8 * r + i] =
            with_group<P>(totals[8 * r + i], strip[32 * i + int(lane)], numbers, sum_of_x);
      }
    }
  }
}

// Computes a tile: rows from `first_row` on times two panels. `panel` is the left one for SIMD
// group 0, and the right one for SIMD group 1. sums [32] of a thread:
//
//   by lanes  [8][4], the tile's rows 4 r + 2 simd_group + lane / 16 of columns 16 c + lane % 16
//   by units  all rows of column `lane` of the panel
template <typename P, int kMatrixUnits, typename Rows>
inline void add_tile(device const float* x, device const uint* panel, constant LinearParameters& p,
                     Rows rows, uint first_row, threadgroup float* shared, uint simd_group,
                     uint lane, thread float* sums) {
  constexpr bool kForUnits = kMatrixUnits != 0;
  constexpr int kSpan = P::group() < 32 ? P::group() : 32;
  const uint column = 32 * simd_group + lane;
  const int eights = int((min(rows.count - first_row, 32u) + 7) / 8);
  float totals[32] = {};
  float parts[kForUnits ? 1 : 32] = {};
  simdgroup_float8x8 unit_parts[kForUnits ? 16 : 1];
#pragma unroll
  for (int i = 0; i < (kForUnits ? 16 : 1); ++i) {
    unit_parts[i] = make_filled_simdgroup_matrix<float, 8, 8>(0.0f);
  }
  float runs[4] = {};
  write_levels<P>(shared, simd_group, lane);
  threadgroup_barrier(mem_flags::mem_threadgroup);
  NextBlock<P> next;
  load_next<P>(x, panel, p, rows, first_row, 0, simd_group, lane, next);
  for (uint k = 0; k < p.width; k += 32) {
    stage_x<P>(next, k, simd_group, lane, shared, runs);
    stage_codes<P, kForUnits>(next, column, shared);
    GroupNumbers numbers[32 / kSpan];
#pragma unroll
    for (int span = 0; span < 32 / kSpan; ++span) {
      const int g = int(k % uint(P::unit())) / P::group() + span;
      numbers[span] = group_numbers<typename P::Scale>(typename P::Format(), next.header, g);
      if (!kForUnits && !P::is_plain()) {
        shared[Tile::scales() + 64 * span + int(column)] = numbers[span].scale;
        shared[Tile::offsets() + 64 * span + int(column)] = numbers[span].offset;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
    if (k + 32 < p.width)
      load_next<P>(x, panel, p, rows, first_row, k + 32, simd_group, lane, next);
#pragma unroll
    for (int span = 0; span < 32 / kSpan; ++span) {
      const bool ends = group_ends<P>(k, (span + 1) * kSpan, p.width);
      if (kForUnits) {
        multiply_by_units(shared, span * kSpan, kSpan, eights, simd_group, unit_parts);
        if (ends) {
          fold_by_units<P>(shared, span, numbers[span], eights, simd_group, lane, unit_parts,
                           totals);
        }
      } else {
        multiply_by_lanes(shared, span * kSpan, kSpan, simd_group, lane, parts);
        if (ends) fold_by_lanes<P>(shared, span, simd_group, lane, parts, totals);
      }
    }
    if ((k + 32) % p.chunk == 0 || k + 32 >= p.width) {
#pragma unroll
      for (int i = 0; i < 32; ++i) {
        sums[i] += totals[i];
        totals[i] = 0;
      }
    }
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
}

// Writes what add_tile() has summed for the `pair`-th two panels: rows of out from `first_row` on,
// fewer than `num_rows`.
template <int kMatrixUnits>
inline void write_tile(thread const float* sums, device const float* bias, device float* out,
                       constant LinearParameters& p, uint num_rows, uint first_row, uint pair,
                       uint simd_group, uint lane) {
#pragma unroll
  for (uint i = 0; i < 32; ++i) {
    const uint row = first_row + (kMatrixUnits != 0 ? i : i / 4 * 4 + 2 * simd_group + lane / 16);
    const uint column =
        64 * pair + (kMatrixUnits != 0 ? 32 * simd_group + lane : i % 4 * 16 + lane % 16);
    if (row < num_rows && column < p.cols) {
      const uint at = p.out_column + column;
      out[size_t(row) * p.out_stride + at] = p.has_bias != 0 ? sums[i] + bias[at] : sums[i];
    }
  }
}

#endif  // PAGODA_MANY_ROWS_METAL_H
