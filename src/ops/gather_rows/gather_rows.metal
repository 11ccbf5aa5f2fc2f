// gather_rows on Apple GPUs. A row of a weight's segment is a column of one of its panels.
#include "backend/gpu/kernel.metal.h"
#include "ops/gather_rows/gather_rows_metal.h"
#include "ops/linear/panels.metal.h"

// Returns the value of column `column` of a panel at `k`, as quant/*.h defines it.
template <typename P>
inline float panel_value(device const uint* panel, uint column, uint k, uint width) {
  constexpr int kLow = P::low();
  constexpr int kHigh = P::high();
  constexpr uint kUnit = uint(P::unit());
  device const uint* const unit = panel + size_t(k / kUnit) * uint(P::unit_words());
  const int in_unit = int(k % kUnit);
  const int blocks = min((int(width - (k - uint(in_unit))) + 31) / 32, P::unit() / 32);
  const int word = in_unit * kLow / 32;
  const uint low = kLow >= 4
                       ? unit[P::low_at(blocks) + 32 * (word / 4 * 4) + 4 * int(column) + word % 4]
                       : word_at(unit + P::low_at(blocks), kLow * blocks, column, word);
  if (kLow == 32) return as_type<float>(low);
  const int place = in_unit * kLow % 32;
  if (kLow == 16) return number_of<typename P::Scale>(low >> place & 0xffffu);
  uint code = low >> place & ((1u << (kLow % 32)) - 1);
  if (kHigh > 0) {
    // One word of the high plane has the high bits of kSlots words of the low plane (see
    // code_number). of_block: the low word's number in its block.
    constexpr int kSlots = kHigh > 0 ? kLow / kHigh : 1;
    const int of_block = word % kLow;
    const int high_word = in_unit / 32 * kHigh + of_block / kSlots;
    const uint high = word_at(unit + P::high_at(blocks), kHigh * blocks, column, high_word);
    code |= (high >> (place + kHigh * (of_block % kSlots)) & ((1u << kHigh) - 1)) << kLow;
  }
  PanelHeader header;
  load_header<P>(unit, blocks, column, header);
  const GroupNumbers numbers =
      group_numbers<typename P::Scale>(typename P::Format(), header, in_unit / P::group());
  const float number = P::Format::has_levels() ? level_of(typename P::Format(), code)
                                               : float(int(code) - P::Format::zero());
  const float product = numbers.scale * number;
  return P::Format::has_offset() ? product + numbers.offset : product;
}

// A threadgroup takes 256 elements of one id's row. It writes nothing if the row is in another
// segment.
template <typename Name, int kBits, int kGroup, typename Number>
[[kernel]] void gather_rows(device const uint* panels [[buffer(0)]],
                            device const int* ids [[buffer(1)]], device float* out [[buffer(2)]],
                            constant GatherRowsParameters& p [[buffer(3)]], PAGODA_THREAD) {
  const uint row = uint(ids[size_t(group.x) * p.ids_stride]) - p.first_row;
  const uint k = 256 * group.y + 32 * simd_group + lane;
  if (row < p.rows && k < p.width) {
    const float value = panel_value<Panels<Name, kBits, kGroup, Number>>(
        panels + size_t(row / 32) * p.panel_stride, row % 32, k, p.width);
    out[size_t(group.x) * p.width + k] = value * p.factor;
  }
}
