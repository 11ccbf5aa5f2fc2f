// AMX's tiles as plain C++, after Intel's Software Developer's Manual, volume 2: TILELOADD,
// TDPBSSD, TDPBF16PS and related instructions.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdlib>
#include <cstring>

namespace emulated {

struct Tile {
  std::uint8_t rows = 0;
  std::uint16_t row_bytes = 0;
  std::uint8_t bytes[16][64] = {};
};
inline thread_local Tile tiles[8];
inline thread_local bool is_configured = false;

inline void check(bool holds) {
  if (!holds) std::abort();  // where the processor raises an exception
}

inline void tile_loadconfig(const void* config) {
  const auto* bytes = static_cast<const std::uint8_t*>(config);
  check(bytes[0] == 1 && bytes[1] == 0);
  for (int i = 0; i < 8; ++i) {
    tiles[i] = {};
    std::memcpy(&tiles[i].row_bytes, bytes + 16 + 2 * i, 2);
    tiles[i].rows = bytes[48 + i];
    check(tiles[i].row_bytes <= 64 && tiles[i].rows <= 16);
  }
  is_configured = true;
}
inline void tile_release() {
  for (Tile& tile : tiles) tile = {};
  is_configured = false;
}
inline void tile_zero(int to) {
  check(is_configured && tiles[to].rows > 0);
  std::memset(tiles[to].bytes, 0, sizeof(tiles[to].bytes));
}
inline void tile_loadd(int to, const void* from, std::int64_t stride) {
  tile_zero(to);
  for (int row = 0; row < tiles[to].rows; ++row) {
    std::memcpy(tiles[to].bytes[row], static_cast<const char*>(from) + row * stride,
                tiles[to].row_bytes);
  }
}
inline void tile_stored(int from, void* to, std::int64_t stride) {
  check(is_configured && tiles[from].rows > 0);
  for (int row = 0; row < tiles[from].rows; ++row) {
    std::memcpy(static_cast<char*>(to) + row * stride, tiles[from].bytes[row],
                tiles[from].row_bytes);
  }
}

// Adds the products of a's rows and b's columns, four bytes of k at a time. A and B: the bytes'
// types.
template <class A, class B>
void tile_dot(int to, int a, int b) {
  Tile& sums = tiles[to];
  check(is_configured && to != a && to != b && a != b && sums.rows == tiles[a].rows &&
        tiles[a].row_bytes == 4 * tiles[b].rows && sums.row_bytes == tiles[b].row_bytes);
  for (int row = 0; row < sums.rows; ++row) {
    for (int column = 0; column < sums.row_bytes / 4; ++column) {
      std::int32_t sum;
      std::memcpy(&sum, sums.bytes[row] + 4 * column, 4);
      for (int k = 0; k < tiles[a].row_bytes; ++k) {
        const auto of_a = static_cast<A>(tiles[a].bytes[row][k]);
        const auto of_b = static_cast<B>(tiles[b].bytes[k / 4][4 * column + k % 4]);
        // Sums wrap around.
        sum = static_cast<std::int32_t>(static_cast<std::uint32_t>(sum) +
                                        static_cast<std::uint32_t>(int{of_a} * int{of_b}));
      }
      std::memcpy(sums.bytes[row] + 4 * column, &sum, 4);
    }
  }
}

// Products of bfloat16 treat subnormal float32 numbers as zero.
inline float without_denormals(float value) {
  return std::fpclassify(value) == FP_SUBNORMAL ? std::copysign(0.0f, value) : value;
}
inline float bfloat16_of(const std::uint8_t* bytes) {
  std::uint16_t word;
  std::memcpy(&word, bytes, sizeof(word));
  const std::uint32_t bits = std::uint32_t{word} << 16;
  float value;
  std::memcpy(&value, &bits, sizeof(value));
  return without_denormals(value);
}

// Adds the products of a's rows and b's columns, pairs of bfloat16 of k at a time. Even k and odd k
// are each a chain of fused multiply-adds from zero; the sum of both chains is added.
inline void tile_dot_bfloat16(int to, int a, int b) {
  Tile& sums = tiles[to];
  check(is_configured && to != a && to != b && a != b && sums.rows == tiles[a].rows &&
        tiles[a].row_bytes == 4 * tiles[b].rows && sums.row_bytes == tiles[b].row_bytes);
  for (int row = 0; row < sums.rows; ++row) {
    for (int column = 0; column < sums.row_bytes / 4; ++column) {
      float chains[2] = {};
      for (int k = 0; k < tiles[a].row_bytes / 2; ++k) {
        float& chain = chains[k % 2];
        chain = without_denormals(
            std::fma(bfloat16_of(tiles[a].bytes[row] + 2 * k),
                     bfloat16_of(tiles[b].bytes[k / 2] + 4 * column + k % 2 * 2), chain));
      }
      float sum;
      std::memcpy(&sum, sums.bytes[row] + 4 * column, 4);
      sum = without_denormals(without_denormals(sum) + without_denormals(chains[0] + chains[1]));
      std::memcpy(sums.bytes[row] + 4 * column, &sum, 4);
    }
  }
}

}  // namespace emulated

#undef _tile_loadconfig
#undef _tile_release
#undef _tile_zero
#undef _tile_loadd
#undef _tile_stored
#undef _tile_dpbssd
#undef _tile_dpbsud
#undef _tile_dpbf16ps
#define _tile_loadconfig emulated::tile_loadconfig
#define _tile_release emulated::tile_release
#define _tile_zero emulated::tile_zero
#define _tile_loadd emulated::tile_loadd
#define _tile_stored emulated::tile_stored
#define _tile_dpbssd (emulated::tile_dot<std::int8_t, std::int8_t>)
#define _tile_dpbsud (emulated::tile_dot<std::int8_t, std::uint8_t>)
#define _tile_dpbf16ps emulated::tile_dot_bfloat16
