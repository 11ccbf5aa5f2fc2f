// The cpu product's micro-kernels: a table of functions for each instruction set.
//
// A kernel multiplies a tile of rows of x, rounded as it likes them, with panels of 16 output
// columns (backend/cpu/panel_format.h). Whatever the height of the tile and the place of a row in
// it, each output element is the same operations in the same order:
//
//   for each block of k under one scale:  s = sum of x[k] * code[k], pairs of k in order
//                                         acc += scale * s  (+ minimum * sum of the block's x)
//
// s is exact, in 32-bit integers; float32 weights have one chain over all k. A kernel may have x
// share a scale over several blocks and apply it to what they came to. It may have powers of two
// for scales (avx512/tile-inl.h). It may take minima, or blocks' own integer scales, as integers
// too (avx512/minima-inl.h, avx512/super-inl.h). On AMX blocks have integers for scales in every
// format (amx/group_numbers-inl.h).
#pragma once

#include <cstddef>
#include <cstdint>

#include "backend/cpu/panel_format.h"
#include "backend/cpu/prefetch_level.h"

namespace pagoda::cpu {

// How x enters the products.
enum class Rounding : std::uint8_t {
  kFloat32,  // as it is
  kInt16,    // block by block, to the block's largest magnitude / largest_integer: 2e-5
  kInt8,     // the same of 127: 7e-3; only where the user asks for it
};

struct ActivationLayout {
  Rounding rounding = Rounding::kFloat32;
  int block = 32;               // k under one scale, and over which x is summed for minima
  int span = 0;                 // k under one scale where that is more by the kernels' own choice
  bool has_exact_sums = false;  // of blocks of a span, in integers
  // The integer that a block's largest magnitude becomes, or may become where scales are powers of
  // two: a block's products have to fit 32 bits.
  int largest_integer = 32767;
  bool is_nibbles = false;  // bytes of x lie as codes of four bits want them, else of eight
  // The rows from which on a tile has 16-bit integers as planes of bytes; 0: none has.
  int least_plane_rows = 0;
  // Whether integers outside planes lie as their high bytes and their low ones, in words each.
  bool is_split = false;
  // The number by which codes are too high where they meet planes of tiles below the highest.
  int code_offset = 0;
  bool takes_whole_rows = false;  // a row's numbers depend on all of it
  bool operator==(const ActivationLayout&) const = default;
};

// Rows of x on their way into a tile.
struct TileSource {
  const float* x = nullptr;  // [num_rows, cols]
  std::int64_t x_stride = 0;
  int num_rows = 0;  // that exist; the others are zero
  int tile_rows = 0;
  std::int64_t cols = 0;
};

// A part of a tile: k [begin, end), or all of them where the layout takes whole rows. `begin` is a
// multiple of kTilePart, and so is `end`, unless it is the last one.
struct TilePart {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};
inline constexpr std::int64_t kTilePart = 512;

// All rows of x, in tiles, times one segment of a weight.
struct PanelProduct {
  PanelKind kind = PanelKind::kF32;
  ActivationLayout layout;
  const std::byte* tiles = nullptr;
  std::int64_t tile_bytes = 0;
  int tile_rows = 0;
  std::int64_t num_rows = 0;
  std::int64_t cols = 0;
  const std::byte* panels = nullptr;
  std::int64_t panel_bytes = 0;
  std::int64_t header_area = 0;  // before a panel's groups, as PanelLayout has it
  int units_of_header = 1;
  bool header_is_bfloat16 = false;
  std::int64_t num_columns = 0;  // of the segment's outputs
  float* out = nullptr;          // [num_rows, num_columns]
  std::int64_t out_stride = 0;
  const float* bias = nullptr;  // [num_columns], or null
  WeightPrefetch prefetch = WeightPrefetch::kSecondLevel;
};

// The heights that a tile may have; the first one is decode's.
inline constexpr int kHighestTile = 16;
inline constexpr int kTileHeights[] = {1, 2, 4, 6, kHighestTile};

struct LinearKernels {
  // Gives the layout that multiply takes; false where it does not take the kind.
  bool (*layout_of)(PanelKind kind, ActivationLayout& layout) = nullptr;
  // Does the same for x in bytes, where kernels have such a path.
  bool (*int8_layout_of)(PanelKind kind, ActivationLayout& layout) = nullptr;
  // Returns the most rows of a tile where there are so many: one of kTileHeights.
  int (*most_rows)(const ActivationLayout& layout, std::int64_t num_rows) = nullptr;
  std::int64_t (*tile_bytes)(const ActivationLayout& layout, int tile_rows,
                             std::int64_t cols) = nullptr;
  // Rounds a part of x into a tile. Parts of one tile may be packed at a time.
  void (*pack_tile)(const ActivationLayout& layout, const TileSource& source, const TilePart& part,
                    std::byte* tile) = nullptr;
  // Multiplies panels [begin, end) of the segment; both are even.
  void (*multiply)(const PanelProduct& product, std::int64_t begin, std::int64_t end) = nullptr;
};

// Null where this architecture has no such instruction set.
extern const LinearKernels* const kAvx512Kernels;
// Has AVX-512's product of x in bytes, and an arithmetic of its own else (amx/group_numbers-inl.h).
extern const LinearKernels* const kAmxKernels;
extern const LinearKernels* const kAvx2Kernels;
extern const LinearKernels* const kNeonKernels;
// Takes every kind, in float32, with what vectors the machine has.
extern const LinearKernels* const kPortableKernels;

}  // namespace pagoda::cpu
