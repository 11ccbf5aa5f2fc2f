// The cpu product on machines with AMX, whose tiles multiply bytes.
//
// Tiles of 16 rows store their integers as planes of bytes (amx/tile_sums-inl.h). AVX-512
// instructions multiply fewer rows, in the same arithmetic. x in bytes is multiplied by the product
// for AVX-512.
#include "ops/linear/amx/linear_amx.h"

#include "ops/linear/amx/group_numbers-inl.h"

namespace pagoda::cpu {
namespace {

// Returns the fewest rows for which it pays to unpack weights for tiles (docs/performance/log.md).
std::int64_t least_rows(const ActivationLayout& layout) {
  if (layout.is_split) return 7;
  return layout.is_nibbles ? 9 : 13;
}

bool layout_of(PanelKind kind, ActivationLayout& layout) {
  if (!kAvx512Kernels->layout_of(kind, layout)) return false;
  const PanelFormat format = panel_format(kind);
  // Only integer minima need sums of blocks of 16.
  const bool has_short_minima = format.has_minimum() && format.block < kUnit;
  layout = {.rounding = Rounding::kInt16,
            .block = has_short_minima ? format.block : kUnit,
            .span = kSuperGroup,
            .has_exact_sums = has_integer_minima(kind),
            .largest_integer = kPlanesLargest,
            .is_nibbles = format.low_bits == 4,
            .least_plane_rows = meets_bytes(kind) ? 1 : kHighestTile,
            .is_split = is_short(kind),
            .code_offset = code_offset(kind)};
  return true;
}

bool int8_layout_of(PanelKind kind, ActivationLayout& layout) {
  return kAvx512Kernels->int8_layout_of(kind, layout);
}

int most_rows(const ActivationLayout& layout, std::int64_t num_rows) {
  if (layout.least_plane_rows > 0 && num_rows >= least_rows(layout)) return kHighestTile;
  return kAvx512Kernels->most_rows(layout, num_rows);
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (product.layout.rounding == Rounding::kInt8) {
    return kAvx512Kernels->multiply(product, begin, end);
  }
  if (product.tile_rows == kHighestTile) return amx::multiply_many(product, begin, end);
  amx::multiply_few(product, begin, end);
}

constexpr LinearKernels kKernels = {.layout_of = layout_of,
                                    .int8_layout_of = int8_layout_of,
                                    .most_rows = most_rows,
                                    .tile_bytes = avx512::tile_bytes,
                                    .pack_tile = avx512::pack_tile,
                                    .multiply = multiply};

}  // namespace

const LinearKernels* const kAmxKernels = &kKernels;

}  // namespace pagoda::cpu
