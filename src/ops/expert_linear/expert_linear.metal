// The products of a mixture's rows with their experts' weights, a threadgroup's rows in one block,
// and the sums of tokens' rows.
#include "backend/gpu/kernel.metal.h"
#include "ops/expert_linear/expert_blocks.metal.h"
#include "ops/expert_linear/expert_linear_metal.h"
#include "ops/linear/few_rows.metal.h"
#include "ops/linear/many_rows.metal.h"

// Multiplies blocks of at most kRows rows. x, out [rows, ..], bias [experts, cols]
template <typename Name, int kBits, int kGroup, typename Number, int kRows>
[[kernel]] void expert_linear_few(device const float* x [[buffer(0)]],
                                  device const uint* panels [[buffer(1)]],
                                  device const float* bias [[buffer(2)]],
                                  device const int* blocks [[buffer(3)]],
                                  device float* out [[buffer(4)]],
                                  constant LinearParameters& p [[buffer(5)]],
                                  threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const ExpertBlock block = expert_block(blocks, group.y);
  if (block.num_rows == 0) return;
  device const uint* const panel =
      panels + size_t(block.expert) * p.expert_words + size_t(group.x) * p.panel_stride;
  add_chunks<Panels<Name, kBits, kGroup, Number>, kRows, 1>(
      x + size_t(block.first_row) * p.x_stride, panel, p, FirstRows{block.num_rows}, shared,
      simd_group, lane);
  write_chunks<kRows>(shared, bias + size_t(block.expert) * p.cols * p.has_bias,
                      out + size_t(block.first_row) * p.out_stride, p, block.num_rows, group.x,
                      simd_group, lane);
}

// Multiplies blocks of at most 32 rows, each with 64 columns.
template <typename Name, int kBits, int kGroup, typename Number, int kMatrixUnits>
[[kernel]] void expert_linear_many(device const float* x [[buffer(0)]],
                                   device const uint* panels [[buffer(1)]],
                                   device const float* bias [[buffer(2)]],
                                   device const int* blocks [[buffer(3)]],
                                   device float* out [[buffer(4)]],
                                   constant LinearParameters& p [[buffer(5)]],
                                   threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  const ExpertBlock block = expert_block(blocks, group.x);
  if (block.num_rows == 0) return;
  const uint last_panel = (p.cols - 1) / 32;
  const uint panel = min(2 * group.y + simd_group, last_panel);
  float sums[32] = {};
  add_tile<Panels<Name, kBits, kGroup, Number>, kMatrixUnits>(
      x + size_t(block.first_row) * p.x_stride,
      panels + size_t(block.expert) * p.expert_words + size_t(panel) * p.panel_stride, p,
      FirstRows{block.num_rows}, 0, shared, simd_group, lane, sums);
  write_tile<kMatrixUnits>(sums, bias + size_t(block.expert) * p.cols * p.has_bias,
                           out + size_t(block.first_row) * p.out_stride, p, block.num_rows, 0,
                           group.y, simd_group, lane);
}

// Adds up each token's products, times their weights, and the output of a shared expert. products
// [rows, hidden], places and weights [tokens, num_chosen], shared and out [tokens, hidden],
// shared_gate [tokens]
[[kernel]] void expert_linear_sum(device const float* products [[buffer(0)]],
                                  device const int* places [[buffer(1)]],
                                  device const float* weights [[buffer(2)]],
                                  device const float* shared [[buffer(3)]],
                                  device const float* shared_gate [[buffer(4)]],
                                  device float* out [[buffer(5)]],
                                  constant ExpertSumParameters& p [[buffer(6)]], PAGODA_THREAD) {
  const uint column = 256 * group.x + thread_id;
  if (column >= p.hidden) return;
  const size_t first = size_t(group.y) * p.num_chosen;
  float sum = 0.0f;
  for (uint i = 0; i < p.num_chosen; ++i) {
    sum = fma(weights[first + i], products[size_t(places[first + i]) * p.hidden + column], sum);
  }
  const size_t at = size_t(group.y) * p.hidden + column;
  if (p.has_shared != 0) {
    const float weight =
        p.has_shared_gate != 0 ? 1.0f / (1.0f + precise::exp(-shared_gate[group.y])) : 1.0f;
    sum = fma(weight, shared[at], sum);
  }
  out[at] = sum;
}
