// The cpu product on AVX-512 with AMX's tiles of bytes.
//
// A tile of x has 16 rows, as AVX-512's products have theirs but for the integers, which are planes
// of bytes (amx/tile_sums-inl.h). Fewer rows than make a tile worth its while, and x in bytes, are
// AVX-512's: the bits are the same.
#include "ops/linear/amx/linear_amx.h"

#include "ops/linear/amx/tile_sums-inl.h"
#include "ops/linear/avx512/tile-inl.h"

namespace pagoda::cpu {
namespace {

// Blocks of 16 k would fill half of a tile. Scaled first, as AVX-512's products have them, they are
// two planes, and four tile products take as long as AVX-512 does.
bool is_of_tiles(PanelKind kind) {
  return panel_format(kind).block >= kUnit;
}
bool is_of_tiles(const ActivationLayout& layout, int tile_rows) {
  return layout.is_planes && tile_rows == kTileRows;
}

bool layout_of(PanelKind kind, ActivationLayout& layout) {
  if (!kAvx512Kernels->layout_of(kind, layout)) return false;
  layout.is_planes = is_of_tiles(kind);
  return true;
}

bool int8_layout_of(PanelKind kind, ActivationLayout& layout) {
  return kAvx512Kernels->int8_layout_of(kind, layout);
}

int most_rows(const ActivationLayout& layout) {
  return layout.is_planes ? kTileRows : kAvx512Kernels->most_rows(layout);
}

template <int kDepth>
void split_tile(std::byte* tile, std::int64_t cols) {
  const std::int64_t num_blocks = padded_units(cols) * kUnit / kDepth;
  for (std::int64_t block = 0; block < num_blocks; ++block) {
    split_block<kDepth>(tile + block * 2 * kPlaneBytes<kDepth>);
  }
}

void pack_tile(const ActivationLayout& layout, const TileSource& source, std::byte* tile) {
  avx512::pack_tile(layout, source, tile);
  if (!is_of_tiles(layout, source.tile_rows)) return;
  if (has_powers(layout)) return split_tile<kPowersBlock>(tile, source.cols);
  split_tile<kUnit>(tile, source.cols);
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (!is_of_tiles(product.layout, product.tile_rows)) {
    return kAvx512Kernels->multiply(product, begin, end);
  }
  if (is_super(product.kind)) return amx::multiply_super(product, begin, end);
  amx::multiply_blocks(product, begin, end);
}

constexpr LinearKernels kKernels = {.layout_of = layout_of,
                                    .int8_layout_of = int8_layout_of,
                                    .most_rows = most_rows,
                                    .tile_bytes = avx512::tile_bytes,
                                    .pack_tile = pack_tile,
                                    .multiply = multiply};

}  // namespace

const LinearKernels* const kAmxKernels = &kKernels;

}  // namespace pagoda::cpu
