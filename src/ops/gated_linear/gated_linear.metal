// The product of x and a weight in which panels of gate and of up alternate, and then glu of both
// (ops/linear/product.metal.h has the arithmetic).
#include "backend/gpu/kernel.metal.h"
#include "ops/gated_linear/gated_sums.metal.h"

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
      x, panels + size_t(group.x) * p.panel_stride, p, FirstRows{p.rows}, shared, simd_group, lane);
  write_gated_chunks<kRows>(shared, bias, out, p, p.rows, group.x, simd_group, lane);
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
  add_tile<Panels<Name, kBits, kGroup, Number>, kMatrixUnits>(
      x, panel, p, FirstRows{p.rows}, first_row, shared, simd_group, lane, sums);
  write_gated_tile<kMatrixUnits>(sums, shared, bias, out, p, p.rows, first_row, group.y, simd_group,
                                 lane);
}
