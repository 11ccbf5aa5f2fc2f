// Codes of up to 8 bits as signed bytes, for the NEON products that multiply bytes.
//
// A 16-bit x is 256 * h + l in signed bytes (tile-inl.h), so two products of bytes are exact. If
// codes do not fit in a signed byte, 128 is subtracted from each. To correct that, 128 times the
// sum of x is added to their sum.
#pragma once

#include "ops/linear/neon/linear_neon.h"
#include "ops/linear/neon/tile-inl.h"

namespace pagoda::cpu {
namespace {

struct LevelTable {
  alignas(kRegisterBytes) std::int8_t levels[kRegisterBytes];
};
constexpr LevelTable make_levels(PanelKind kind) {
  LevelTable table = {};
  for (int i = 0; i < kRegisterBytes; ++i) {
    table.levels[i] = static_cast<std::int8_t>(code_value(kind, i));
  }
  return table;
}
template <PanelKind kKind>
constexpr LevelTable kLevels = make_levels(kKind);

PAGODA_INLINE uint8x16_t load_bytes(const std::byte* from) {
  return vld1q_u8(reinterpret_cast<const std::uint8_t*>(from));
}

// Returns codes of kBits each of quad kQuad, at bit 0 of their bytes, other bits zero.
template <int kBits, int kQuad>
PAGODA_INLINE uint8x16_t bytes_of(const std::byte* plane) {
  constexpr int kFirst = first_pair_of(kQuad);
  const uint8x16_t line = load_bytes(plane + kLineOf<kBits, kFirst>);
  if constexpr (kBits == 8) {
    const uint8x16_t next = load_bytes(plane + kLineOf<kBits, kFirst + kPairDistance>);
    return kFirst % 2 == 0 ? vtrn1q_u8(line, next) : vtrn2q_u8(line, next);
  } else if constexpr (kBits == 4) {
    if constexpr (kFirst % 2 == 1) return vshrq_n_u8(line, 4);
    return vandq_u8(line, vdupq_n_u8(15));
  } else {
    static_assert(kBits == 2);
    // A half-word's bytes have pairs 0 and 4, 1 and 5, ... at the same bit.
    constexpr int kBit = 2 * (kFirst % 2);
    uint8x16_t first = line;
    if constexpr (kBit > 0) first = vshrq_n_u8(line, kBit);
    const uint8x16_t mask = vdupq_n_u8(3);
    first = vandq_u8(first, mask);
    const uint8x16_t second = vandq_u8(vshrq_n_u8(line, kBit + 2 * kPairDistance), mask);
    return kFirst % 8 < 4 ? vtrn1q_u8(first, second) : vtrn2q_u8(first, second);
  }
}

// Returns quad kQuad of a unit: bytes of four k of each of four columns.
template <PanelKind kKind, int kQuad>
PAGODA_INLINE int8x16_t quad_of(const UnitPlanes<kKind>& planes) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  constexpr int kLow = kFormat.low_bits, kHigh = kFormat.high_bits;
  uint8x16_t codes = bytes_of<kLow, kQuad>(planes.low);
  if constexpr (kHigh > 0) {
    constexpr int kFirst = first_pair_of(kQuad);
    const uint16x8_t above = load_words(planes.high + kLineOf<kHigh, kFirst>);
    const uint16x8_t first = codes_of<kHigh, kFirst, kLow>(above);
    const uint16x8_t second = codes_of<kHigh, kFirst + kPairDistance, kLow + 8>(above);
    codes = vorrq_u8(codes, vreinterpretq_u8_u16(vorrq_u16(first, second)));
  }
  if constexpr (has_levels(kKind)) return vqtbl1q_s8(vld1q_s8(kLevels<kKind>.levels), codes);
  if constexpr (kKind == PanelKind::kAffine8) codes = veorq_u8(codes, vdupq_n_u8(128));
  return vreinterpretq_s8_u8(codes);
}

// The number to add to a code's byte to get its value.
template <PanelKind kKind>
constexpr int kOffset = kKind == PanelKind::kAffine8                     ? 128
                        : has_levels(kKind) || kKind == PanelKind::kQ8_0 ? 0
                                                                         : code_value(kKind, 0);

// Loads x of two quads of a row: [high bytes of the first, of the second, low bytes of both].
PAGODA_INLINE int8x16_t load_split(const std::byte* unit, int quad) {
  return vld1q_s8(reinterpret_cast<const std::int8_t*>(unit + quad / 2 * kRegisterBytes));
}

}  // namespace
}  // namespace pagoda::cpu
