// Tiles of x in integers, as far as the instruction sets agree on them. They are in an unnamed
// namespace, as is all code that is compiled for one instruction set (unrolled-inl.h).
#pragma once

#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Returns the units that x is padded to, because a panel has whole groups of 64 k.
PAGODA_INLINE std::int64_t padded_units(std::int64_t cols) {
  return (cols + 2 * kUnit - 1) / (2 * kUnit) * 2;
}
PAGODA_INLINE std::int64_t num_blocks(const ActivationLayout& layout, std::int64_t cols) {
  return padded_units(cols) * kUnit / layout.block;
}

// Returns the unit behind a part's last one, with those that x is padded with behind its end.
PAGODA_INLINE std::int64_t end_unit(const TilePart& part, std::int64_t cols) {
  return part.end < cols ? part.end / kUnit : padded_units(cols);
}

// Returns the bytes of a tile. `arrays` of four bytes for each block of each row follow the
// integers, `unit_bytes` a row.
PAGODA_INLINE std::int64_t integer_tile_bytes(const ActivationLayout& layout, int tile_rows,
                                              std::int64_t cols, std::int64_t unit_bytes,
                                              int arrays) {
  const std::int64_t numbers = arrays * num_blocks(layout, cols) * tile_rows * 4;
  const std::int64_t bytes = padded_units(cols) * tile_rows * unit_bytes + numbers;
  return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
}

// Fills in the layout of a kind; returns false for float32, which the portable code multiplies.
// x has 13 bits where weights have 14, so that the sum of 64 products fits.
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
