// Code that the NEON files of the cpu product share. Each file is compiled for an instruction set
// of its own.
//
// x is rounded to 16-bit integers of magnitude 32639 at most, block by block. Such an integer is
// 256 * h + l with both h and l signed bytes. So byte dot products are as exact as 16-bit ones, and
// both give the same bits.
#pragma once

#include <arm_neon.h>

#include "backend/cpu/six_bit_words.h"
#include "ops/linear/linear_kernels.h"
#include "ops/linear/sum_tile-inl.h"
#include "ops/linear/unrolled-inl.h"

namespace pagoda::cpu {
namespace {

constexpr int kPairs = kUnit / 2;
constexpr int kLanes = 4;  // columns of a register of sums
constexpr int kRegisterBytes = 16;
constexpr int kHalvesBytes = 2 * kPanelColumns;  // 16 numbers in 16 bits
constexpr int kLargestInteger = 32639;

PAGODA_INLINE uint16x8_t load_words(const std::byte* from) {
  return vld1q_u16(reinterpret_cast<const std::uint16_t*>(from));
}
PAGODA_INLINE uint32x4_t load_integers(const std::byte* from) {
  return vld1q_u32(reinterpret_cast<const std::uint32_t*>(from));
}
PAGODA_INLINE float32x4_t load_floats(const std::byte* from) {
  return vld1q_f32(reinterpret_cast<const float*>(from));
}
// Loads four numbers.
PAGODA_INLINE float32x4_t load_halves(const std::byte* from) {
  return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(reinterpret_cast<const std::uint16_t*>(from))));
}
PAGODA_INLINE float32x4_t load_bfloat16(const std::byte* from) {
  const uint16x4_t words = vld1_u16(reinterpret_cast<const std::uint16_t*>(from));
  return vreinterpretq_f32_u32(vshll_n_u16(words, 16));
}

// Keeps a sum's steps in the order of the source. g++ 12 moves products about until sums and
// weights are spilled: a tenth to a quarter more instructions
// (docs/performance/instruction_sets.md).
PAGODA_INLINE void hold(int32x4_t& sum) {
  asm volatile("" : "+w"(sum));
}

// Returns the codes of kBits each of pair kPair of a unit, at bit kTo of their half-words; other
// bits are zero. `words`: the line that holds them.
template <int kBits, int kPair, int kTo>
PAGODA_INLINE uint16x8_t codes_of(uint16x8_t words) {
  constexpr int kFrom = kBits * (kPair % (16 / kBits));
  if constexpr (kFrom > kTo) words = vshrq_n_u16(words, kFrom - kTo);
  if constexpr (kFrom < kTo) words = vshlq_n_u16(words, kTo - kFrom);
  return vandq_u16(words, vdupq_n_u16(((1 << kBits) - 1) << kTo));
}

// The offset in a plane of the line that holds pair kPair.
template <int kBits, int kPair>
constexpr int kLineOf = kLineBytes * (kPair / (16 / kBits));

// The scale and the minimum of a block, for four columns.
struct BlockNumbers {
  float32x4_t scale;
  float32x4_t minimum;
};

// Loads four bytes as integers.
PAGODA_INLINE uint16x4_t load_four_bytes(const std::byte* from) {
  const uint32x2_t word = vld1_dup_u32(reinterpret_cast<const std::uint32_t*>(from));
  return vget_low_u16(vmovl_u8(vreinterpret_u8_u32(word)));
}
PAGODA_INLINE int16x4_t load_four_signed_bytes(const std::byte* from) {
  const uint32x2_t word = vld1_dup_u32(reinterpret_cast<const std::uint32_t*>(from));
  return vget_low_s16(vmovl_s8(vreinterpret_s8_u32(word)));
}

// Returns the powers 2^(exponent - 128) of four columns of a block of MXFP4. Those of exponents 0 and
// 1 are subnormal numbers.
PAGODA_INLINE float32x4_t scales_of_exponents(const std::byte* exponents) {
  const int32x4_t exponent = vreinterpretq_s32_u32(vmovl_u16(load_four_bytes(exponents)));
  const int32x4_t normal = vshlq_n_s32(vsubq_s32(exponent, vdupq_n_s32(1)), 23);
  const int32x4_t small = vshlq_s32(vdupq_n_s32(0x200000), vminq_s32(exponent, vdupq_n_s32(2)));
  return vreinterpretq_f32_s32(vmaxq_s32(normal, small));
}

// Reads the numbers of block `block` of a group, columns [4 * four, 4 * four + 4).
template <PanelKind kKind>
PAGODA_INLINE BlockNumbers block_numbers(const std::byte* group, int block, int four) {
  constexpr PanelHeader kHeader = panel_format(kKind).header;
  const std::byte* halves = group + 2 * kLanes * four;
  const float32x4_t zero = vdupq_n_f32(0);
  if constexpr (kHeader == PanelHeader::kPowers) {
    return {load_floats(group + kRegisterBytes * four), zero};
  } else if constexpr (kHeader == PanelHeader::kScales) {
    return {load_halves(halves + block * kHalvesBytes), zero};
  } else if constexpr (kHeader == PanelHeader::kScalesMinima) {
    return {load_halves(halves), load_halves(halves + kHalvesBytes)};
  } else if constexpr (kHeader == PanelHeader::kBytes) {
    const std::byte* bytes = group + kLineBytes + block * kPanelColumns + kLanes * four;
    const float32x4_t scale = vcvtq_f32_s32(vmovl_s16(load_four_signed_bytes(bytes)));
    return {vmulq_f32(load_halves(halves), scale), zero};
  } else {
    uint32x4_t scale, minimum;
    if constexpr (kHeader == PanelHeader::kSixBit) {
      const std::byte* words = group + kLineBytes + kRegisterBytes * four;
      const auto of_block =
          six_bit_numbers(load_integers(words), load_integers(words + kLineBytes),
                          load_integers(words + 2 * kLineBytes), static_cast<std::uint32_t>(block));
      scale = of_block.scale;
      minimum = of_block.minimum;
    } else {
      const std::byte* bytes = group + kLineBytes + block * kPanelColumns + kLanes * four;
      const uint32x4_t both = vmovl_u16(load_four_bytes(bytes));
      scale = vandq_u32(both, vdupq_n_u32(15));
      minimum = vshrq_n_u32(both, 4);
    }
    const float32x4_t product =
        vmulq_f32(load_halves(halves + kHalvesBytes), vcvtq_f32_u32(minimum));
    return {vmulq_f32(load_halves(halves), vcvtq_f32_u32(scale)), vnegq_f32(product)};
  }
}

PAGODA_INLINE void store_columns(float32x4_t sum, float* out, const float* bias,
                                 std::int64_t count) {
  if (count >= kLanes) {
    if (bias) sum = vaddq_f32(sum, vld1q_f32(bias));
    vst1q_f32(out, sum);
    return;
  }
  float values[kLanes];
  vst1q_f32(values, sum);
  for (std::int64_t i = 0; i < count; ++i) out[i] = bias ? values[i] + bias[i] : values[i];
}

// A tile's place in the product: its first row, its panel, and its first column in the panel.
struct TilePlace {
  std::int64_t first_row;
  std::int64_t panel;
  int four;  // columns from 4 * four on
};

template <int kRows, int kFours>
PAGODA_INLINE void store_sums(const float32x4_t (&sums)[kRows][kFours], const PanelProduct& product,
                              const TilePlace& place) {
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    const std::int64_t row = place.first_row + r;
    if (row >= product.num_rows) return;
    for_all<kFours>([&](auto c) PAGODA_FLATTEN {
      const std::int64_t column = place.panel * kPanelColumns + kLanes * (place.four + c);
      store_columns(sums[r][c], product.out + row * product.out_stride + column,
                    product.bias ? product.bias + column : nullptr, product.num_columns - column);
    });
  });
}

template <int kRows, int kFours>
PAGODA_INLINE void clear(float32x4_t (&sums)[kRows][kFours]) {
  for_all<kRows>([&](auto r) PAGODA_FLATTEN {
    for_all<kFours>([&](auto c) PAGODA_FLATTEN { sums[r][c] = vdupq_n_f32(0); });
  });
}

// The planes of a unit, from a tile's first column on.
template <PanelKind kKind>
struct UnitPlanes {
  const std::byte* low;
  const std::byte* high;

  PAGODA_INLINE UnitPlanes after(int units, int bytes) const {
    constexpr PanelFormat kFormat = panel_format(kKind);
    return {low + units * kFormat.low_bits * kLineBytes + bytes,
            high + units * kFormat.high_bits * kLineBytes + bytes};
  }
};

// A tile of rows times 4 * kFours columns of a panel of a quantised kind. BlockSum<kKind>'s
// add<kBlock>(planes, tile, s) computes the exact sums over block kBlock of a unit, or over a block
// of several units.
template <PanelKind kKind, template <PanelKind> class BlockSum, int kRows, int kFours>
class IntegerTile {
 public:
  static constexpr PanelFormat kFormat = panel_format(kKind);
  static constexpr int kUnitsOfBlock = kFormat.block > kUnit ? kFormat.block / kUnit : 1;
  static constexpr int kBlocksOfUnit = kFormat.block > kUnit ? 1 : kUnit / kFormat.block;

  // Multiplies a tile. Not inlined: it takes all registers.
  __attribute__((noinline)) static void multiply(const PanelProduct& product,
                                                 const TilePlace& place) {
    TileView tile = view_of(product.tiles + place.first_row / kRows * product.tile_bytes,
                            product.layout, kRows, product.cols);
    const std::byte* panel = product.panels + place.panel * product.panel_bytes;
    const std::byte* group = panel + product.header_area;
    float32x4_t sums[kRows][kFours];
    clear(sums);
    const std::int64_t num_groups = kFormat.num_groups(product.cols);
    for (std::int64_t g = 0; g < num_groups; ++g, group += kFormat.group_bytes()) {
      const UnitPlanes<kKind> planes = {group + kFormat.low_plane(), group + kFormat.high_plane()};
      for (int unit = 0; unit < kFormat.group / kUnit; unit += kUnitsOfBlock) {
        for_all<kBlocksOfUnit>([&](auto block) PAGODA_FLATTEN {
          int32x4_t s[kRows][kFours];
          BlockSum<kKind>::template add<decltype(block)::kValue>(
              planes.after(unit, kRegisterBytes * place.four), tile, s);
          const int of_group = unit / kUnitsOfBlock * kBlocksOfUnit + block;
          for_all<kFours>([&](auto c) PAGODA_FLATTEN {
            const BlockNumbers numbers =
                numbers_of(product, panel, group, g, {.block = of_group, .four = place.four + c});
            for_all<kRows>([&](auto r) PAGODA_FLATTEN {
              add_block(numbers, s[r][c], tile.scales[r], tile.sums[r], sums[r][c]);
            });
          });
          tile.scales += kRows;
          tile.sums += kRows;
        });
        tile.units += kUnitsOfBlock * kRows * kLineBytes;
      }
    }
    store_sums(sums, product, place);
  }

 private:
  struct BlockPlace {
    int block;  // of the group
    int four;
  };

  PAGODA_INLINE static void add_block(const BlockNumbers& numbers, int32x4_t s, float scale,
                                      std::int32_t x_sum, float32x4_t& sum) {
    sum = vfmaq_f32(sum, numbers.scale, vmulq_n_f32(vcvtq_f32_s32(s), scale));
    if constexpr (kFormat.has_minimum()) {
      sum = vfmaq_n_f32(sum, numbers.minimum, scale * static_cast<float>(x_sum));
    }
  }

  PAGODA_INLINE static BlockNumbers numbers_of(const PanelProduct& product, const std::byte* panel,
                                               const std::byte* group, std::int64_t g,
                                               const BlockPlace& place) {
    if constexpr (kFormat.header == PanelHeader::kAffine) {
      const std::byte* header =
          panel + g / product.units_of_header * kLineBytes + 2 * kLanes * place.four;
      if (product.header_is_bfloat16) {
        return {load_bfloat16(header), load_bfloat16(header + kHalvesBytes)};
      }
      return {load_halves(header), load_halves(header + kHalvesBytes)};
    } else if constexpr (kFormat.header == PanelHeader::kExponents) {
      return {scales_of_exponents(panel + g * kPanelColumns + kLanes * place.four), vdupq_n_f32(0)};
    } else {
      return block_numbers<kKind>(group, place.block, place.four);
    }
  }
};

// Multiplies all tiles, panel by panel, so that each panel is read as one ascending stream. Later
// rows read it from the first-level cache, 4 * kFours columns at a time.
template <class Tile, int kRows, int kFours>
void multiply_tiles(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  for (std::int64_t panel = begin; panel < end; ++panel) {
    if (panel * kPanelColumns >= product.num_columns) return;
    for (std::int64_t row = 0; row < product.num_rows; row += kRows) {
      for (int four = 0; four < kPanelColumns / kLanes; four += kFours) {
        Tile::multiply(product, {.first_row = row, .panel = panel, .four = four});
      }
    }
  }
}

template <PanelKind kKind, template <PanelKind> class BlockSum>
void multiply_integer_kind(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  switch (product.tile_rows) {
    case 1:
      return multiply_tiles<IntegerTile<kKind, BlockSum, 1, 4>, 1, 4>(product, begin, end);
    case 2:
      return multiply_tiles<IntegerTile<kKind, BlockSum, 2, 4>, 2, 4>(product, begin, end);
    default:
      return multiply_tiles<IntegerTile<kKind, BlockSum, 4, 2>, 4, 2>(product, begin, end);
  }
}

template <template <PanelKind> class BlockSum>
void multiply_integers(const PanelProduct& product, std::int64_t begin, std::int64_t end) {
  // Takes only kinds with codes of up to 8 bits: portable code multiplies float32, and kInt14 has
  // no bytes.
  with_kind(product.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind != PanelKind::kF32 && kKind != PanelKind::kInt14)
      multiply_integer_kind<kKind, BlockSum>(product, begin, end);
  });
}

}  // namespace
}  // namespace pagoda::cpu
