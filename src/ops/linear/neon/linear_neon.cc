// The cpu product on AArch64: the kernels that every processor can run, and the choice of faster
// ones that this machine can run.
//
// up to 8 bits   on the two bytes of 16-bit integers smmla (linear_neon_matrix.cc), else sdot
//                (linear_neon_dot.cc), else smlal
// F16, BF16      smlal on their integers of 14 bits
// F32            float32 (linear_portable.cc)
//
// Sums over a block are exact, so that smmla, sdot and smlal give the same bits. bf16 (bfdot,
// bfmmla) is not used, because x would keep only 8 bits; with 14-bit weights it keeps 13.
#include <array>

#include "backend/cpu/arm_features.h"
#include "ops/linear/neon/linear_neon.h"
#include "ops/linear/neon/tile-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kMostRows = 4;

// Levels minus the lowest one. In IQ4's table code 0 has zero, so that a lookup of the zero byte above
// a code yields zero.
using LowestLevels = std::array<std::uint8_t, kRegisterBytes>;
constexpr LowestLevels make_lowest_levels(PanelKind kind) {
  LowestLevels levels = {};
  for (int i = 0; i < kRegisterBytes; ++i) {
    levels[i] = static_cast<std::uint8_t>(code_value(kind, i) - lowest_level(kind));
  }
  return levels;
}
template <PanelKind kKind>
constexpr LowestLevels kLowestLevels = make_lowest_levels(kKind);

template <PanelKind kKind>
constexpr int kOffset = kKind == PanelKind::kQ8_0 || kKind == PanelKind::kInt14 ? 0
                        : has_levels(kKind) ? lowest_level(kKind)
                                            : code_value(kKind, 0);

// Returns one k of pair kPair for eight columns. low, high: that k's half-words of the lines.
template <PanelKind kKind, int kPair>
PAGODA_INLINE int16x8_t integers_of(uint16x8_t low, uint16x8_t high) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  if constexpr (kKind == PanelKind::kInt14) {
    return vreinterpretq_s16_u16(low);
  } else if constexpr (kKind == PanelKind::kQ8_0) {
    const int16x8_t bytes = vreinterpretq_s16_u16(low);
    if constexpr (kPair % 2 == 1) return vshrq_n_s16(bytes, 8);
    return vshrq_n_s16(vshlq_n_s16(bytes, 8), 8);
  } else {
    uint16x8_t codes = codes_of<kFormat.low_bits, kPair, 0>(low);
    if constexpr (kFormat.high_bits > 0) {
      codes = vorrq_u16(codes, codes_of<kFormat.high_bits, kPair, kFormat.low_bits>(high));
    }
    if constexpr (has_levels(kKind)) {
      // A lookup beyond the table yields zero.
      if constexpr (kLowestLevels<kKind>[0] != 0) codes = vorrq_u16(codes, vdupq_n_u16(0x8000));
      const uint8x16_t levels =
          vqtbl1q_u8(vld1q_u8(kLowestLevels<kKind>.data()), vreinterpretq_u8_u16(codes));
      codes = vreinterpretq_u16_u8(levels);
    }
    return vreinterpretq_s16_u16(codes);
  }
}

// The words of eight columns of a line: their first half-words, then their second half-words.
struct WordHalves {
  uint16x8_t half[2];
};
PAGODA_INLINE WordHalves load_word_halves(const std::byte* line) {
  const uint16x8_t first = load_words(line), second = load_words(line + kRegisterBytes);
  return {{vuzp1q_u16(first, second), vuzp2q_u16(first, second)}};
}

template <PanelKind kKind>
struct WideBlockSum {
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr int kUnitsOfBlock = kFormat.block > kUnit ? kFormat.block / kUnit : 1;
  static constexpr int kPairsOfBlock = kFormat.block / kUnitsOfBlock / 2;  // in one unit

  template <int kBlock, int kRows, int kFours>
  PAGODA_INLINE static void add(const UnitPlanes<kKind>& planes, const TileView& tile,
                                int32x4_t (&s)[kRows][kFours]) {
    for_all<kRows>([&](auto r) PAGODA_FLATTEN {
      const int32x4_t start = vdupq_n_s32(kOffset<kKind> ? kOffset<kKind> * tile.sums[r] : 0);
      for_all<kFours>([&](auto c) PAGODA_FLATTEN { s[r][c] = start; });
    });
    for_all<kUnitsOfBlock>([&](auto unit) PAGODA_FLATTEN {
      const std::byte* x = tile.units + unit * kRows * kLineBytes;
      for_all<kPairsOfBlock>([&](auto i) PAGODA_FLATTEN {
        constexpr int kPair = kBlock * kPairsOfBlock + decltype(i)::kValue;
        for_all<kFours / 2>([&](auto eight) PAGODA_FLATTEN {
          add_eight<kPair, decltype(eight)::kValue>(planes.after(unit, 0), x, s);
        });
      });
    });
  }

 private:
  // Adds columns [8 * kEight, 8 * kEight + 8).
  template <int kPair, int kEight, int kRows, int kFours>
  PAGODA_INLINE static void add_eight(const UnitPlanes<kKind>& planes, const std::byte* x,
                                      int32x4_t (&s)[kRows][kFours]) {
    constexpr int kByte = 2 * kRegisterBytes * kEight;
    const WordHalves low = load_word_halves(planes.low + kLineOf<kFormat.low_bits, kPair> + kByte);
    WordHalves high = low;
    if constexpr (kFormat.high_bits > 0) {
      high = load_word_halves(planes.high + kLineOf<kFormat.high_bits, kPair> + kByte);
    }
    for_all<2>([&](auto p) PAGODA_FLATTEN {
      constexpr int kK = 2 * kPair + decltype(p)::kValue;
      const int16x8_t w = integers_of<kKind, kPair>(low.half[p], high.half[p]);
      for_all<kRows>([&](auto r) PAGODA_FLATTEN {
        const auto* row = reinterpret_cast<const std::int16_t*>(x + r * kLineBytes);
        const int16x8_t eight = vld1q_s16(row + kK / 8 * 8);
        int32x4_t& first = s[r][2 * kEight];
        int32x4_t& second = s[r][2 * kEight + 1];
        first = vmlal_laneq_s16(first, vget_low_s16(w), eight, kK % 8);
        second = vmlal_high_laneq_s16(second, w, eight, kK % 8);
        hold(first);
        hold(second);
      });
    });
  }
};

// The product that takes x as bytes. Null if the machine has none; x is half-words then.
using MultiplyBytes = void (*)(const PanelProduct& product, std::int64_t begin, std::int64_t end);
PAGODA_INLINE MultiplyBytes multiply_bytes() {
  static const ArmFeatures features = arm_features();
  if (features.has_matrix_product) return multiply_neon_matrix;
  return features.has_dot_product ? multiply_neon_dot : nullptr;
}

PAGODA_INLINE bool is_split(const ActivationLayout& layout) {
  return layout.largest_integer == kLargestInteger && multiply_bytes() != nullptr;
}

bool layout_of(PanelKind kind, ActivationLayout& layout) {
  return integer_layout_of(kind, kLargestInteger, layout);
}

int most_rows(const ActivationLayout&, std::int64_t) {
  return kMostRows;
}

constexpr int kMostBlock = 64;

// Loads values [first, first + count) of a row, and zeros beyond its end.
PAGODA_INLINE void load_block(const TileRow& row, std::int64_t first, int count, float* values) {
  for (int i = 0; i < count; ++i) {
    values[i] = row.x && first + i < row.cols ? row.x[first + i] : 0.0f;
  }
}

PAGODA_INLINE float largest_of(const float* values, int count) {
  float32x4_t largest = vdupq_n_f32(0);
  for (int i = 0; i < count; i += kLanes) {
    largest = vmaxq_f32(largest, vabsq_f32(vld1q_f32(values + i)));
  }
  return vmaxvq_f32(largest);
}

// Rounds values times `factor` to integers. Returns the integers' sum.
PAGODA_INLINE std::int32_t round_values(const float* values, int count, float factor,
                                        std::int16_t* to) {
  int32x4_t sum = vdupq_n_s32(0);
  for (int i = 0; i < count; i += kLanes) {
    const int32x4_t rounded = vcvtnq_s32_f32(vmulq_n_f32(vld1q_f32(values + i), factor));
    sum = vaddq_s32(sum, rounded);
    vst1_s16(to + i, vqmovn_s32(rounded));
  }
  return vaddvq_s32(sum);
}

// Stores bytes of integers: the high bytes of two quads, then their low bytes, and so on.
PAGODA_INLINE void store_split(const std::int16_t* integers, std::byte* to) {
  constexpr int kBytes = kRegisterBytes / 2;
  for (int i = 0; i < kUnit; ++i) {
    const int pair = first_pair_of(i / 4) + i % 2 * kPairDistance;
    const int x = integers[2 * pair + i % 4 / 2];
    const int high = (x + 128) >> 8;
    std::byte* two_quads = to + i / kBytes * kRegisterBytes;
    two_quads[i % kBytes] = static_cast<std::byte>(high);
    two_quads[kBytes + i % kBytes] = static_cast<std::byte>(x - 256 * high);
  }
}
PAGODA_INLINE void store_halves(const std::int16_t* integers, std::byte* to) {
  for (int i = 0; i < kUnit; i += 8) {
    vst1q_s16(reinterpret_cast<std::int16_t*>(to) + i, vld1q_s16(integers + i));
  }
}

// Packs two units, the most that share a scale.
PAGODA_INLINE void pack_units(const TileRow& row, std::int64_t unit,
                              const ActivationLayout& layout) {
  std::int16_t integers[kMostBlock];
  for (int k = 0; k < kMostBlock; k += layout.block) {
    float values[kMostBlock];
    load_block(row, unit * kUnit + k, layout.block, values);
    const float largest = largest_of(values, layout.block);
    const auto limit = static_cast<float>(layout.largest_integer);
    const float factor = largest > 0 ? limit / largest : 0.0f;
    const std::int64_t at = (unit * kUnit + k) / layout.block * row.tile_rows;
    row.sums[at] = round_values(values, layout.block, factor, integers + k);
    row.scales[at] = largest / limit;
  }
  for (int half = 0; half < 2; ++half) {
    std::byte* to = row.units + (unit + half) * row.tile_rows * kLineBytes;
    if (is_split(layout)) {
      store_split(integers + half * kUnit, to);
    } else {
      store_halves(integers + half * kUnit, to);
    }
  }
}

void pack_tile(const ActivationLayout& layout, const TileSource& source, const TilePart& part,
               std::byte* tile) {
  for (int r = 0; r < source.tile_rows; ++r) {
    const TileRow row = row_of(layout, source, tile, r);
    const std::int64_t end = end_unit(part, row.cols);
    for (std::int64_t unit = part.begin / kUnit; unit < end; unit += 2) {
      pack_units(row, unit, layout);
    }
  }
}

void multiply(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  if (product.kind == PanelKind::kInt14) {
    return multiply_integer_kind<PanelKind::kInt14, WideBlockSum>(product, begin, end);
  }
  if (is_split(product.layout)) return multiply_bytes()(product, begin, end);
  return multiply_integers<WideBlockSum>(product, begin, end);
}

constexpr LinearKernels kKernels = {.layout_of = layout_of,
                                    .most_rows = most_rows,
                                    .tile_bytes = tile_bytes,
                                    .pack_tile = pack_tile,
                                    .multiply = multiply};

}  // namespace

const LinearKernels* const kNeonKernels = &kKernels;

}  // namespace pagoda::cpu
