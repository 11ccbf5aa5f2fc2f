// gated_linear for a mixture's rows, a threadgroup's rows in one block.
#include "backend/gpu/kernel.metal.h"
#include "ops/expert_linear/expert_blocks.metal.h"
#include "ops/gated_linear/gated_sums.metal.h"

// Multiplies blocks of at most kRows rows. x [tokens, ..], tokens [rows], bias [experts, 2 * cols],
// out [rows, cols]
template <typename Name, int kBits, int kGroup, typename Number, int kRows>
[[kernel]] void expert_gated_linear_few(
    device const float* x [[buffer(0)]], device const uint* panels [[buffer(1)]],
    device const float* bias [[buffer(2)]], device const int* blocks [[buffer(3)]],
    device const int* tokens [[buffer(4)]], device float* out [[buffer(5)]],
    constant LinearParameters& p [[buffer(6)]], threadgroup float* shared [[threadgroup(0)]],
    PAGODA_THREAD) {
  const ExpertBlock block = expert_block(blocks, group.y);
  if (block.num_rows == 0) return;
  device const uint* const panel =
      panels + size_t(block.expert) * p.expert_words + size_t(group.x) * p.panel_stride;
  add_chunks<Panels<Name, kBits, kGroup, Number>, kRows, 2>(
      x, panel, p, TokenRows{tokens + block.first_row, block.num_rows}, shared, simd_group, lane);
  write_gated_chunks<kRows>(shared, bias + size_t(block.expert) * 2 * p.cols * p.has_bias,
                            out + size_t(block.first_row) * p.out_stride, p, block.num_rows,
                            group.x, simd_group, lane);
}

// Multiplies blocks of at most 32 rows, each with 32 columns.
template <typename Name, int kBits, int kGroup, typename Number, int kMatrixUnits>
[[kernel]] void expert_gated_linear_many(
    device const float* x [[buffer(0)]], device const uint* panels [[buffer(1)]],
    device const float* bias [[buffer(2)]], device const int* blocks [[buffer(3)]],
    device const int* tokens [[buffer(4)]], device float* out [[buffer(5)]],
    constant LinearParameters& p [[buffer(6)]], threadgroup float* shared [[threadgroup(0)]],
    PAGODA_THREAD) {
  const ExpertBlock block = expert_block(blocks, group.x);
  if (block.num_rows == 0) return;
  device const uint* const panel = panels + size_t(block.expert) * p.expert_words +
                                   size_t(group.y) * p.panel_stride +
                                   size_t(simd_group) * p.panel_words;
  float sums[32] = {};
  add_tile<Panels<Name, kBits, kGroup, Number>, kMatrixUnits>(
      x, panel, p, TokenRows{tokens + block.first_row, block.num_rows}, 0, shared, simd_group, lane,
      sums);
  write_gated_tile<kMatrixUnits>(sums, shared,
                                 bias + size_t(block.expert) * 2 * p.cols * p.has_bias,
                                 out + size_t(block.first_row) * p.out_stride, p, block.num_rows, 0,
                                 group.y, simd_group, lane);
}
