// Products of at most four rows: a lane owns a column of a panel, and a SIMD group takes a chunk of
// k.
//
// Each SIMD group of a threadgroup takes one chunk of the same panel, or of a gate's panel and the
// up panel beside it. Their totals are added through threadgroup memory, so one dispatch loads each
// weight once. A SIMD group stages its own x in threadgroup memory, a step at a time, and all its
// lanes read it from there at once.
//
// `shared` of a threadgroup: [16] levels; then for each SIMD group [kRows][128] x and [8][kRows]
// sums of x. At the end [chunks][kPanels][kRows][32] totals follow the levels instead.
#ifndef PAGODA_FEW_ROWS_METAL_H
#define PAGODA_FEW_ROWS_METAL_H

#include "ops/linear/product.metal.h"

// Returns the k that are multiplied at a time: enough for a lane to ask for several pieces of codes
// before it waits, few enough for registers to hold them.
template <typename P>
constexpr int few_rows_step() {
  return P::low() == 32 ? 32 : P::low() == 16 ? 64 : 128;
}

// The x that a lane has loaded for a step: four k of each row.
template <int kRows>
struct FewRows {
  float4 values[kRows];
};

// Loads x of the step that begins at k.
template <typename P, int kRows, typename Rows>
inline FewRows<kRows> load_few(device const float* x, constant LinearParameters& p, Rows rows,
                               uint k, uint lane) {
  constexpr uint kStep = uint(few_rows_step<P>());
  FewRows<kRows> loaded;
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    loaded.values[r] =
        load_x(x, p, rows, kStep == 128 || 4 * lane < kStep ? uint(r) : rows.count, k + 4 * lane);
  }
  return loaded;
}

// Writes x of a step, and the sums of its groups, to threadgroup memory.
template <typename P, int kRows>
inline void stage_few(thread const FewRows<kRows>& rows, uint lane, threadgroup float* staged,
                      threadgroup float* sums) {
  constexpr int kGroup = P::group();
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float4 values = rows.values[r];
    if (few_rows_step<P>() == 128 || 4 * lane < uint(few_rows_step<P>())) {
      *(threadgroup float4*)(staged + 128 * r + 4 * int(lane)) = values;
    }
    if (P::Format::has_offset()) {
      float sum = sum_of_run < kGroup == 16 ? 16 : 32 > (values);
      if (kGroup == 64) sum += simd_shuffle_xor(sum, ushort(8));
      if (kGroup == 128) {
        const float second = simd_shuffle(sum, ushort(8));
        const float third = simd_shuffle(sum, ushort(16));
        const float fourth = simd_shuffle(sum, ushort(24));
        sum = ((sum + second) + third) + fourth;
      }
      constexpr int kLanes = kGroup / 4;
      if (int(lane) % kLanes == 0) sums[int(lane) / kLanes * kRows + r] = sum;
    }
  }
}

// Adds the products of kCount k of a block, from its k `first` on, to each row's part.
template <typename P, int kRows, int kCount>
inline void multiply_few(thread const uint* low, thread const uint* high, int first,
                         threadgroup const float* staged, threadgroup const float* levels,
                         thread float* parts) {
#pragma unroll
  for (int k = first; k < first + kCount; k += 4) {
    const float code0 = code_number<P>(low, high, k, levels);
    const float code1 = code_number<P>(low, high, k + 1, levels);
    const float code2 = code_number<P>(low, high, k + 2, levels);
    const float code3 = code_number<P>(low, high, k + 3, levels);
#pragma unroll
    for (int r = 0; r < kRows; ++r) {
      const float4 values = *(threadgroup const float4*)(staged + 128 * r + k);
      float part = fma(values.x, code0, parts[r]);
      part = fma(values.y, code1, part);
      part = fma(values.z, code2, part);
      parts[r] = fma(values.w, code3, part);
    }
  }
}

// Adds the parts of a group to the totals, and clears the parts.
template <typename P, int kRows>
inline void end_group(GroupNumbers numbers, threadgroup const float* sums, thread float* parts,
                      thread float* totals) {
#pragma unroll
  for (int r = 0; r < kRows; ++r) {
    const float sum_of_x = P::Format::has_offset() ? sums[r] : 0.0f;
    totals[r] = with_group<P>(totals[r], parts[r], numbers, sum_of_x);
    parts[r] = 0;
  }
}

// A lane's codes of a step.
template <typename P>
struct StepCodes {
  uint low[P::low() * few_rows_step<P>() / 32];
  uint high[P::high() > 0 ? P::high() * few_rows_step<P>() / 32 : 1];
};

// Loads the codes of a step from k `first` of a unit on. REQUIRES: the unit is whole.
template <typename P>
inline void load_step(device const uint* unit, int first, uint lane, thread StepCodes<P>& codes) {
  constexpr int kBlocks = P::unit() / 32;
  constexpr int kStepBlocks = few_rows_step<P>() / 32;
  load_words<P::low() * kStepBlocks>(unit + P::low_at(kBlocks) + P::low() * first, lane, codes.low);
  if (P::high() > 0) {
    load_words<P::high() * kStepBlocks>(unit + P::high_at(kBlocks) + P::high() * first, lane,
                                        codes.high);
  }
}

// Adds a step of a whole unit to the totals. parts [kRows] carry over to the next step, because
// groups of plain types are longer than a step.
template <typename P, int kRows>
inline void add_step(thread const StepCodes<P>& codes, int first, thread const PanelHeader& header,
                     threadgroup const float* staged, threadgroup const float* sums,
                     threadgroup const float* levels, thread float* parts, thread float* totals) {
  constexpr int kGroup = P::group();
  constexpr int kSpan = kGroup < 32 ? kGroup : 32;
#pragma unroll
  for (int k = 0; k < few_rows_step<P>(); k += kSpan) {
    multiply_few<P, kRows, kSpan>(codes.low + P::low() * (k / 32),
                                  codes.high + P::high() * (k / 32), k % 32, staged + k / 32 * 32,
                                  levels, parts);
    if (P::is_plain() ? first + k + kSpan == kGroup : (k + kSpan) % kGroup == 0) {
      const int g = k / kGroup;
      const GroupNumbers numbers =
          group_numbers<typename P::Scale>(typename P::Format(), header, first / kGroup + g);
      end_group<P, kRows>(numbers, sums + kRows * g, parts, totals);
    }
  }
}

// Adds block b of the last unit, which has only `num_k` k. `staged` is the block's x. All lanes
// have the same num_k, so that they take the same branches.
template <typename P, int kRows>
inline void add_block(device const uint* unit, int num_k, int b, thread const PanelHeader& header,
                      uint lane, threadgroup const float* staged, threadgroup const float* sums,
                      threadgroup const float* levels, thread float* parts, thread float* totals) {
  constexpr int kGroup = P::group();
  const int blocks = (num_k + 31) / 32;
  uint low[P::low()];
  uint high[P::high() > 0 ? P::high() : 1];
  load_block<P>(unit, blocks, b, num_k - 32 * b, lane, low, high);
  multiply_few<P, kRows, 32>(low, high, 0, staged, levels, parts);
  const int end = 32 * (b + 1);
  if (end % kGroup == 0 || b + 1 == blocks) {
    const int g = (end - 1) / kGroup;
    const GroupNumbers numbers = group_numbers<typename P::Scale>(typename P::Format(), header, g);
    end_group<P, kRows>(numbers, sums + kRows * g, parts, totals);
  }
}

// Adds up the SIMD group's chunk of kPanels panels. totals [kPanels * kRows]
template <typename P, int kRows, int kPanels, typename Rows>
inline void add_chunk(device const float* x, device const uint* panel, constant LinearParameters& p,
                      Rows rows, uint simd_group, uint lane, threadgroup float* staged,
                      threadgroup const float* levels, thread float* totals) {
  constexpr int kStep = few_rows_step<P>();
  threadgroup float* const sums = staged + 128 * kRows;
  const uint end = min((simd_group + 1) * p.chunk, p.width);
  float parts[kPanels * kRows] = {};
  for (uint k = simd_group * p.chunk; k < end; k += uint(P::unit())) {
    device const uint* const unit = panel + size_t(k / uint(P::unit())) * uint(P::unit_words());
    const int num_k = min(int(end - k), P::unit());
    const bool is_whole = P::Format::is_super() || num_k == P::unit();
    PanelHeader headers[kPanels];
#pragma unroll
    for (int i = 0; i < kPanels; ++i) {
      load_header<P>(unit + size_t(i) * p.panel_words, (num_k + 31) / 32, lane, headers[i]);
    }
    for (int first = 0; first < num_k; first += kStep) {
      StepCodes<P> codes[kPanels];
#pragma unroll
      for (int i = 0; i < kPanels; ++i) {
        if (is_whole) load_step<P>(unit + size_t(i) * p.panel_words, first, lane, codes[i]);
      }
      const FewRows<kRows> loaded = load_few<P, kRows>(x, p, rows, k + uint(first), lane);
      simdgroup_barrier(mem_flags::mem_threadgroup);
      stage_few<P, kRows>(loaded, lane, staged, sums);
      simdgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
      for (int i = 0; i < kPanels; ++i) {
        if (is_whole) {
          add_step<P, kRows>(codes[i], first, headers[i], staged, sums, levels, parts + kRows * i,
                             totals + kRows * i);
          continue;
        }
        for (int b = first / 32; b < min((num_k + 31) / 32, (first + kStep) / 32); ++b) {
          add_block<P, kRows>(unit + size_t(i) * p.panel_words, num_k, b, headers[i], lane,
                              staged + 32 * b - first, sums, levels, parts + kRows * i,
                              totals + kRows * i);
        }
      }
    }
  }
}

// Computes a threadgroup's chunks, and writes their totals to shared + 16:
// [chunks][kPanels][kRows][32].
template <typename P, int kRows, int kPanels, typename Rows>
inline void add_chunks(device const float* x, device const uint* panel,
                       constant LinearParameters& p, Rows rows, threadgroup float* shared,
                       uint simd_group, uint lane) {
  float totals[kPanels * kRows] = {};
  if (P::Format::has_levels()) {
    write_levels<P>(shared, simd_group, lane);
    threadgroup_barrier(mem_flags::mem_threadgroup);
  }
  add_chunk<P, kRows, kPanels>(x, panel, p, rows, simd_group, lane,
                               shared + 16 + 136 * kRows * int(simd_group), shared, totals);
  threadgroup_barrier(mem_flags::mem_threadgroup);
#pragma unroll
  for (int i = 0; i < kPanels * kRows; ++i) {
    shared[16 + 32 * (kPanels * kRows * int(simd_group) + i) + int(lane)] = totals[i];
  }
  threadgroup_barrier(mem_flags::mem_threadgroup);
}

// Returns the sum of the chunks' totals for element i of [kPanels][kRows] and column `lane`.
template <int kRows, int kPanels>
inline float sum_of_chunks(threadgroup const float* shared, uint num_chunks, int i, uint lane) {
  float sum = 0;
  for (uint chunk = 0; chunk < num_chunks; ++chunk) {
    sum += shared[16 + 32 * (kPanels * kRows * int(chunk) + i) + int(lane)];
  }
  return sum;
}

// Writes what add_chunks() has summed for a panel: the first `num_rows` rows of out.
template <int kRows>
inline void write_chunks(threadgroup const float* shared, device const float* bias,
                         device float* out, constant LinearParameters& p, uint num_rows, uint panel,
                         uint simd_group, uint lane) {
  const uint num_chunks = (p.width + p.chunk - 1) / p.chunk;
  const uint column = 32 * panel + lane;
  for (uint row = simd_group; row < num_rows; row += num_chunks) {
    const float sum = sum_of_chunks<kRows, 1>(shared, num_chunks, int(row), lane);
    if (column < p.cols) {
      const uint at = p.out_column + column;
      out[size_t(row) * p.out_stride + at] = p.has_bias != 0 ? sum + bias[at] : sum;
    }
  }
}

#endif  // PAGODA_FEW_ROWS_METAL_H
