// The cpu product's micro-kernels: a table of functions for each instruction set.
//
// A kernel multiplies a tile of rows of x, rounded to the kernel's layout, with panels of 16 output
// columns (backend/cpu/panel_format.h). Each output element takes the same operations in the same
// order, whatever the height of the tile and the place of a row in it:
//
//   for each block of k under one scale:  s = sum of x[k] * code[k], pairs of k in order
//                                         acc += scale * s  (+ minimum * sum of the block's x)
//
// s is exact, in 32-bit integers. Float32 weights are added up in one chain over all k. Kernels may
// differ from this:
// - Several blocks share a scale of x, which multiplies the sum of these blocks.
// - Scales are powers of two (avx512/tile-inl.h).
// - Minima, or scales that are integers in the format, are multiplied as integers
//   (avx512/minima-inl.h, avx512/super-inl.h).
// - On AMX, blocks have integer scales in every format (amx/group_numbers-inl.h).
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>

#include "backend/cpu/panel_format.h"
#include "backend/cpu/prefetch_level.h"

namespace pagoda::cpu {

// How x enters the products.
enum class Rounding : std::uint8_t {
  kFloat32,  // not rounded
  kInt16,    // in steps of each block's largest magnitude / largest_integer: error 2e-5
  kInt8,     // in steps of the largest magnitude / 127: error 7e-3; only if the user asks for it
};

struct ActivationLayout {
  Rounding rounding = Rounding::kFloat32;
  int block = 32;               // k that share a scale; x is summed over them for minima
  int span = 0;                 // k that share a scale if that is more than a block, else 0
  bool has_exact_sums = false;  // whether the sums of x over blocks of a span are exact integers
  // The integer that a block's largest magnitude is rounded to; an upper bound of it if scales are
  // powers of two. With it the sum of a block's products fits in 32 bits.
  int largest_integer = 32767;
  bool is_nibbles = false;  // bytes of x are in the order for codes of four bits, else of eight
  // Tiles of so many rows store 16-bit integers as planes of bytes; least 0: no tile does.
  int least_plane_rows = 0;
  int most_plane_rows = std::numeric_limits<int>::max();
  // Whether tiles without planes store each integer as two words: its high byte, and its low byte.
  bool is_split = false;
  // The constant that is added to codes to make them unsigned bytes, which are multiplied with
  // planes of x. Tiles lower than kHighestTile store a correction for it.
  int code_offset = 0;
  bool takes_whole_rows = false;  // whether a row's scales depend on all its values
  bool operator==(const ActivationLayout&) const = default;
};

// Rows of x on their way into a tile.
struct TileSource {
  const float* x = nullptr;  // rows of `cols` values
  std::int64_t x_stride = 0;
  const std::int32_t* rows = nullptr;  // [num_rows], the rows of x; null: the first ones, in order
  int num_rows = 0;                    // the tile's other rows are zeros
  int tile_rows = 0;
  std::int64_t cols = 0;

  // Returns row `r` of the tile; null: zeros.
  const float* row(int r) const {
    if (r >= num_rows) return nullptr;
    return x + (rows != nullptr ? rows[r] : r) * x_stride;
  }
};

// A part of a tile: k [begin, end), or all k if the layout takes whole rows. `begin` is a multiple
// of kTilePart, and so is the `end` of every part but the last.
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
  std::int64_t header_area = 0;  // bytes before a panel's groups (PanelLayout)
  int units_of_header = 1;
  bool header_is_bfloat16 = false;
  std::int64_t num_columns = 0;  // of the segment's outputs
  float* out = nullptr;          // [num_rows, num_columns]
  std::int64_t out_stride = 0;
  const float* bias = nullptr;  // [num_columns], or null
  WeightPrefetch prefetch = WeightPrefetch::kSecondLevel;
};

// The heights that a tile may have. A decode step of one sequence uses the first.
inline constexpr int kHighestTile = 16;
inline constexpr int kTileHeights[] = {1, 2, 4, 6, kHighestTile};

struct LinearKernels {
  // Sets the layout of x that multiply() takes. Returns false if it does not take the kind.
  bool (*layout_of)(PanelKind kind, ActivationLayout& layout) = nullptr;
  // Does the same for x in bytes. Null if the kernels can't multiply it.
  bool (*int8_layout_of)(PanelKind kind, ActivationLayout& layout) = nullptr;
  // Returns the highest tile to use for a product of num_rows rows: one of kTileHeights.
  int (*most_rows)(const ActivationLayout& layout, std::int64_t num_rows) = nullptr;
  std::int64_t (*tile_bytes)(const ActivationLayout& layout, int tile_rows,
                             std::int64_t cols) = nullptr;
  // Rounds a part of x into a tile. Threads may pack parts of one tile at the same time.
  void (*pack_tile)(const ActivationLayout& layout, const TileSource& source, const TilePart& part,
                    std::byte* tile) = nullptr;
  // Multiplies panels [begin, end) of the segment. REQUIRES: `begin` and `end` are even.
  void (*multiply)(const PanelProduct& product, std::int64_t begin, std::int64_t end) = nullptr;
};

// The kernels for each instruction set. Null on architectures that do not have it.
extern const LinearKernels* const kAvx512Kernels;
// Multiplies x in bytes as kAvx512Kernels do, and else in its own arithmetic
// (amx/group_numbers-inl.h).
extern const LinearKernels* const kAmxKernels;
extern const LinearKernels* const kAvx2Kernels;
extern const LinearKernels* const kNeonKernels;
// Takes every kind, in float32, with the vectors that the machine has.
extern const LinearKernels* const kPortableKernels;

}  // namespace pagoda::cpu
