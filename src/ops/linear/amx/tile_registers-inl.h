// The tile registers, while a thread multiplies.
#pragma once

#include <immintrin.h>

#include "ops/linear/linear_kernels.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kTileRows = 16;

// Each register's rows and their bytes, as LDTILECFG takes them.
struct alignas(kLineBytes) TileShapes {
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
  explicit TileRegisters(const TileShapes& shapes) {
    asm volatile("" : : "m"(shapes));  // of which the compiler takes it to read but a word
    _tile_loadconfig(&shapes);
  }
  ~TileRegisters() { _tile_release(); }
  TileRegisters(const TileRegisters&) = delete;
  TileRegisters& operator=(const TileRegisters&) = delete;
};

}  // namespace
}  // namespace pagoda::cpu
