// The product of x and a segment of a weight (product.metal.h has the arithmetic).
#include "backend/gpu/kernel.metal.h"
#include "ops/linear/few_rows.metal.h"
#include "ops/linear/many_rows.metal.h"

// Multiplies at most kRows rows. Each threadgroup takes a panel, and each of its SIMD groups a
// chunk.
template <typename Name, int kBits, int kGroup, typename Number, int kRows>
[[kernel]] void linear_few(device const float* x [[buffer(0)]],
                           device const uint* panels [[buffer(1)]],
                           device const float* bias [[buffer(2)]], device float* out [[buffer(3)]],
                           constant LinearParameters& p [[buffer(4)]],
                           threadgroup float* shared [[threadgroup(0)]], PAGODA_THREAD) {
  add_chunks<Panels<Name, kBits, kGroup, Number>, kRows, 1>(
      x, panels + size_t(group.x) * p.panel_stride, p, FirstRows{p.rows}, shared, simd_group, lane);
  write_chunks<kRows>(shared, bias, out, p, p.rows, group.x, simd_group, lane);
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
      x, panels + size_t(panel) * p.panel_stride, p, FirstRows{p.rows}, first_row, shared,
      simd_group, lane, sums);
  write_tile<kMatrixUnits>(sums, bias, out, p, p.rows, first_row, group.y, simd_group, lane);
}
