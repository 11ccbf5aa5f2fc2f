// Tiles of x in integers, as far as the instruction sets agree on them. In an unnamed namespace, as
// all that is compiled for one of them (unrolled-inl.h).
#pragma once

#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

// Groups of 64 are whole in a panel, so x is padded to one.
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

// Gives the layout of a kind; false for float32, which is portable code's. 64 products of 14 bits
// leave 13 for x.
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
