// The parts of integer tiles of x that all instruction sets share. All code here is in an unnamed
// namespace, like all code that is compiled for one instruction set (unrolled-inl.h).
#pragma once

#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Returns the number of units that x is padded to. It is even, because panels have whole groups of
// 64 k.
PAGODA_INLINE std::int64_t padded_units(std::int64_t cols) {
  return (cols + 2 * kUnit - 1) / (2 * kUnit) * 2;
}
PAGODA_INLINE std::int64_t num_blocks(const ActivationLayout& layout, std::int64_t cols) {
  return padded_units(cols) * kUnit / layout.block;
}

// Returns the unit after a part's last one. The last part includes the units that pad x.
PAGODA_INLINE std::int64_t end_unit(const TilePart& part, std::int64_t cols) {
  return part.end < cols ? part.end / kUnit : padded_units(cols);
}

// Returns the bytes of a tile. Integers take `unit_bytes` for each unit of a row. They are followed
// by `arrays` arrays that have four bytes for each block of each row.
PAGODA_INLINE std::int64_t integer_tile_bytes(const ActivationLayout& layout, int tile_rows,
                                              std::int64_t cols, std::int64_t unit_bytes,
                                              int arrays) {
  const std::int64_t numbers = arrays * num_blocks(layout, cols) * tile_rows * 4;
  const std::int64_t bytes = padded_units(cols) * tile_rows * unit_bytes + numbers;
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Fills in the layout of a kind; returns false for float32, which the portable code multiplies.
// If weights have 14 bits, x has 13, so that the sum of 64 products fits in 32 bits.
PAGODA_INLINE bool integer_layout_of(PanelKind kind, int largest_integer,
                                     ActivationLayout& layout) {
  if (kind == PanelKind::kF32) return false;
  layout = {.rounding = Rounding::kInt16,
            .block = panel_format(kind).block,
            .largest_integer = kind == PanelKind::kInt14 ? 4095 : largest_integer};
  return true;
}

}  // namespace
}  // namespace pagoda::cpu
