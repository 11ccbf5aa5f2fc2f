// AMX's tile registers, configured while a thread multiplies. Used in files that are compiled for
// AMX, and in functions that are (PAGODA_FOR_TILES).
#pragma once

#include <immintrin.h>

#include <cstdint>

// Compiles a function for AMX, whatever its file is compiled for.
#define PAGODA_FOR_TILES __attribute__((target("amx-tile,amx-int8,amx-bf16")))

namespace pagoda::cpu {
namespace {

constexpr int kTileRows = 16;
constexpr int kTileRowBytes = 64;

// Each register's number of rows and bytes per row, in the layout that LDTILECFG reads.
struct alignas(64) TileShapes {
  std::uint8_t palette = 1;
  std::uint8_t start_row = 0;
  std::uint8_t reserved[14] = {};
  std::uint16_t row_bytes[16] = {};
  std::uint8_t rows[16] = {};

  void set(int tile, int num_rows, int bytes) {
    rows[tile] = static_cast<std::uint8_t>(num_rows);
    row_bytes[tile] = static_cast<std::uint16_t>(bytes);
  }
};
static_assert(sizeof(TileShapes) == 64);

class TileRegisters {
 public:
  PAGODA_FOR_TILES explicit TileRegisters(const TileShapes& shapes) {
    // Makes the compiler write all words: it assumes that _tile_loadconfig reads only one of them.
    asm volatile("" : : "m"(shapes));
    _tile_loadconfig(&shapes);
  }
  PAGODA_FOR_TILES ~TileRegisters() { _tile_release(); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

}  // namespace
}  // namespace pagoda::cpu
