// The cpu product on AVX-512 with AMX's tiles of bytes.
//
// A tile of x has 16 rows, as AVX-512's products have theirs but for the integers, which are planes
// of bytes (amx/tile_sums-inl.h). Fewer rows than make a tile worth its while, and x in bytes, are
// AVX-512's: the bits are the same.
#include "ops/linear/amx/linear_amx.h"

#include "ops/linear/avx512/tile-inl.h"

namespace pagoda::cpu {
namespace {

// Blocks of 16 k would fill half of a tile. Scaled first, as AVX-512's products have them, they are
// two planes, and four tile products take as long as AVX-512 does.
bool is_of_tiles(PanelKind kind) {
  return panel_format(kind).block >= kUnit;
}

// Rows that are worth unpacking weights for the tiles: products of 32 rows by tiles take 0.6 to 0.9 of
// the time that AVX-512 takes, those of 8 rows 1.4 to 1.9 times as long (docs/performance/log.md).
constexpr std::int64_t kLeastRows = 24;
// The same of weights in two planes, which take longer to unpack and to multiply.
constexpr std::int64_t kLeastRowsOfWords = 96;

bool layout_of(PanelKind kind, ActivationLayout& layout) {
  if (!kAvx512Kernels->layout_of(kind, layout)) return false;
  layout.is_planes = is_of_tiles(kind);
  return true;
}

bool int8_layout_of(PanelKind kind, ActivationLayout& layout) {
  return kAvx512Kernels->int8_layout_of(kind, layout);
}

int most_rows(const ActivationLayout& layout, std::int64_t num_rows) {
  const std::int64_t least = has_powers(layout) ? kLeastRowsOfWords : kLeastRows;
  if (layout.is_planes && num_rows >= least) return kHighestTile;
  return kAvx512Kernels->most_rows(layout, num_rows);
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (!has_planes(product.layout, product.tile_rows)) {
    return kAvx512Kernels->multiply(product, begin, end);
  }
  if (is_super(product.kind)) return amx::multiply_super(product, begin, end);
  amx::multiply_blocks(product, begin, end);
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
