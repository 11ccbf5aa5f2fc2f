// Products of 8 x 8 matrices by matrix units, and by the chain of fma over ascending k.
#include "backend/gpu/kernel.metal.h"
#include "backend/gpu/matrix_units_metal.h"

// Each SIMD group computes a trial: d = a b + c, all matrices row by row. out [trials, 2, 64]: the
// matrix units' elements, then the chain's.
[[kernel]] void matrix_units(device const float* a [[buffer(0)]],
                             device const float* b [[buffer(1)]],
                             device const float* c [[buffer(2)]], device float* out [[buffer(3)]],
                             constant MatrixUnitsParameters& p [[buffer(4)]], PAGODA_THREAD) {
  const size_t first = size_t(group.x) * p.num_elements;
  device float* const by_units = out + 2 * first;
  device float* const by_chain = by_units + p.num_elements;
  simdgroup_float8x8 left;
  simdgroup_float8x8 right;
  simdgroup_float8x8 sum;
  simdgroup_load(left, a + first, 8);
  simdgroup_load(right, b + first, 8);
  simdgroup_load(sum, c + first, 8);
  simdgroup_multiply_accumulate(sum, left, right, sum);
  simdgroup_store(sum, by_units, 8);
  for (uint i = lane; i < p.num_elements; i += 32) {
    const uint row = i / 8;
    const uint column = i % 8;
    float total = c[first + i];
    for (uint k = 0; k < 8; ++k) {
      total = fma(a[first + 8 * row + k], b[first + 8 * k + column], total);
    }
    by_chain[i] = total;
  }
}
