#include "cli/bench/dot_product_peak.h"

#if defined(__x86_64__)
#include <immintrin.h>

#include "backend/cpu/cpu_isa.h"

namespace pagoda {
namespace {
constexpr int kChains = 12;
constexpr int kTileChains = 4;

// All tiles have the largest size.
struct alignas(64) TileShapes {
  TileShapes() {
    for (int i = 0; i < 8; ++i) {
      row_bytes[i] = 64;
      rows[i] = 16;
    }
  }

  unsigned char palette = 1;
  unsigned char start_row = 0;
  unsigned char reserved[14] = {};
  unsigned short row_bytes[16] = {};
  unsigned char rows[16] = {};
};
}  // namespace

bool has_bf16_dot_products() {
  return __builtin_cpu_supports("avx512bf16");
}
bool has_integer_dot_products() {
  return __builtin_cpu_supports("avx512vnni");
}

__attribute__((target("avx512f,avx512bf16"))) double bf16_dot_products(std::size_t rounds) {
  __m512 sums[kChains];  // different starts, else the compiler merges the twelve chains
  for (int chain = 0; chain < kChains; ++chain)
    sums[chain] = _mm512_set1_ps(static_cast<float>(chain));
  auto x = (__m512bh)_mm512_set1_epi32(0x3c003c00);
  auto y = (__m512bh)_mm512_set1_epi32(0x3c013c01);
  for (std::size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_dpbf16_ps(sums[chain], x, y);
  }
  for (int chain = 0; chain < kChains; ++chain) asm volatile("" ::"v"(sums[chain]));
  return static_cast<double>(rounds) * kChains * 32;
}

__attribute__((target("avx512f,avx512vnni"))) double int16_dot_products(std::size_t rounds) {
  __m512i sums[kChains];
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_set1_epi32(chain);
  const __m512i x = _mm512_set1_epi16(3);
  const __m512i y = _mm512_set1_epi16(5);
  for (std::size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain)
      sums[chain] = _mm512_dpwssd_epi32(sums[chain], x, y);
  }
  for (int chain = 0; chain < kChains; ++chain) asm volatile("" ::"v"(sums[chain]));
  return static_cast<double>(rounds) * kChains * 32;
}

__attribute__((target("avx512f,avx512vnni"))) double int8_dot_products(std::size_t rounds) {
  __m512i sums[kChains];
  for (int chain = 0; chain < kChains; ++chain) sums[chain] = _mm512_set1_epi32(chain);
  const __m512i x = _mm512_set1_epi8(3);
  const __m512i y = _mm512_set1_epi8(5);
  for (std::size_t i = 0; i < rounds; ++i) {
#pragma GCC unroll 12
    for (int chain = 0; chain < kChains; ++chain)
      sums[chain] = _mm512_dpbusd_epi32(sums[chain], x, y);
  }
  for (int chain = 0; chain < kChains; ++chain) asm volatile("" ::"v"(sums[chain]));
  return static_cast<double>(rounds) * kChains * 64;
}

bool has_tile_products() {
  return amx_state() == AmxState::kUsable;
}

// Multiplies tiles of zeros. GCC's intrinsics require constants as the tiles' numbers.
__attribute__((target("amx-tile,amx-bf16"))) double bf16_tile_products(std::size_t rounds) {
  const TileShapes shapes;
  asm volatile("" ::"m"(shapes));
  _tile_loadconfig(&shapes);
  for (std::size_t i = 0; i < rounds; ++i) {
    _tile_dpbf16ps(0, 4, 5);
    _tile_dpbf16ps(1, 4, 5);
    _tile_dpbf16ps(2, 4, 5);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_release();
  return static_cast<double>(rounds) * kTileChains * 16 * 16 * 32;
}

__attribute__((target("amx-tile,amx-int8"))) double int8_tile_products(std::size_t rounds) {
  const TileShapes shapes;
  asm volatile("" ::"m"(shapes));
  _tile_loadconfig(&shapes);
  for (std::size_t i = 0; i < rounds; ++i) {
    _tile_dpbssd(0, 4, 5);
    _tile_dpbssd(1, 4, 5);
    _tile_dpbssd(2, 4, 5);
    _tile_dpbssd(3, 4, 5);
  }
  _tile_release();
  return static_cast<double>(rounds) * kTileChains * 16 * 16 * 64;
}

}  // namespace pagoda

#else

namespace pagoda {

bool has_bf16_dot_products() {
  return false;
}
bool has_integer_dot_products() {
  return false;
}
double bf16_dot_products(std::size_t) {
  return 0;
}
double int16_dot_products(std::size_t) {
  return 0;
}
double int8_dot_products(std::size_t) {
  return 0;
}
bool has_tile_products() {
  return false;
}
double bf16_tile_products(std::size_t) {
  return 0;
}
double int8_tile_products(std::size_t) {
  return 0;
}

}  // namespace pagoda
#endif
