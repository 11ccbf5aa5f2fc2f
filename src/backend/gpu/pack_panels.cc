// Packs a checkpoint's rows into columns of panels.
#include <algorithm>
#include <cstring>
#include <span>
#include <vector>

#include "backend/gpu/panel_unit.h"
#include "core/check.h"
#include "core/half.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/mxfp4.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q4_k.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/q8_0.h"
#include "quant/tensor_rows.h"

namespace pagoda::gpu {
namespace {

constexpr std::uint32_t pair_of(f16 low, f16 high) {
  return low.bits | std::uint32_t{high.bits} << 16;
}

template <typename Block>
void unpack_nibbles(const Block& block, std::uint8_t* codes) {
  for (int i = 0; i < kBlockSize / 2; ++i) {
    codes[i] = block.nibbles[i] & 15;
    codes[i + kBlockSize / 2] = block.nibbles[i] >> 4;
  }
}

// Reads block `b` of a unit from the file's block. A super-block is a whole unit.
void take(const BlockQ8_0& block, int b, UnitColumn& unit) {
  unit.halves[b] = block.scale.bits;
  for (int i = 0; i < kBlockSize; ++i) {
    unit.codes[kBlockSize * b + i] = static_cast<std::uint8_t>(block.q[i] + 128);
  }
}

void take(const BlockQ4_0& block, int b, UnitColumn& unit) {
  unit.halves[b] = block.scale.bits;
  unpack_nibbles(block, unit.codes + kBlockSize * b);
}

void take(const BlockIQ4_NL& block, int b, UnitColumn& unit) {
  unit.halves[b] = block.scale.bits;
  unpack_nibbles(block, unit.codes + kBlockSize * b);
}

void take(const BlockMXFP4& block, int b, UnitColumn& unit) {
  unit.halves[b / 2] =
      static_cast<std::uint16_t>(unit.halves[b / 2] | block.exponent << (8 * (b % 2)));
  unpack_nibbles(block, unit.codes + kBlockSize * b);
}

void take(const BlockQ4_1& block, int b, UnitColumn& unit) {
  unit.words[b] = pair_of(block.scale, block.minimum);
  unpack_nibbles(block, unit.codes + kBlockSize * b);
}

void take(const BlockQ5_0& block, int b, UnitColumn& unit) {
  unit.halves[b] = block.scale.bits;
  for (int i = 0; i < kBlockSize; ++i) {
    unit.codes[kBlockSize * b + i] = static_cast<std::uint8_t>(block.q(i));
  }
}

void take(const BlockQ5_1& block, int b, UnitColumn& unit) {
  unit.words[b] = pair_of(block.scale, block.minimum);
  for (int i = 0; i < kBlockSize; ++i) {
    unit.codes[kBlockSize * b + i] = static_cast<std::uint8_t>(block.q(i));
  }
}

void take_codes(const SuperBlock& block, int zero, UnitColumn& unit) {
  for (int i = 0; i < SuperBlock::kValues; ++i) {
    unit.codes[i] = static_cast<std::uint8_t>(block.q[i] + zero);
  }
}

void take(const BlockQ2_K& packed, int /*b*/, UnitColumn& unit) {
  std::memcpy(unit.words, packed.scales, sizeof(packed.scales));
  unit.words[4] = pair_of(packed.scale, packed.minimum_scale);
  SuperBlock block;
  unpack(packed, block);
  take_codes(block, 0, unit);
}

void take(const BlockQ3_K& packed, int /*b*/, UnitColumn& unit) {
  SuperBlock block;
  unpack(packed, block);
  unit.halves[0] = packed.scale.bits;
  for (int g = 0; g < SuperBlock::kMaxGroups; ++g) {
    const auto scale = static_cast<std::uint32_t>(block.scales[g] + 32);
    unit.words[g / 8] |= (scale & 15) << (4 * (g % 8));
    unit.words[2] |= (scale >> 4) << (2 * g);
  }
  take_codes(block, 4, unit);
}

template <typename Block>  // Q4_K or Q5_K
void take_six_bit(const Block& packed, UnitColumn& unit) {
  SuperBlock block;
  unpack(packed, block);
  unit.words[0] = pair_of(packed.scale, packed.minimum_scale);
  for (int g = 0; g < SuperBlock::kValues / Block::kGroupSize; ++g) {
    const auto scale = static_cast<std::uint32_t>(block.scales[g]);
    const std::uint32_t minimum = block.minima[g];
    unit.words[1] |= (scale & 15) << (4 * g);
    unit.words[2] |= (minimum & 15) << (4 * g);
    unit.words[3] |= (scale >> 4) << (2 * g) | (minimum >> 4) << (2 * g + 16);
  }
  take_codes(block, 0, unit);
}
void take(const BlockQ4_K& packed, int /*b*/, UnitColumn& unit) {
  take_six_bit(packed, unit);
}
void take(const BlockQ5_K& packed, int /*b*/, UnitColumn& unit) {
  take_six_bit(packed, unit);
}

void take(const BlockQ6_K& packed, int /*b*/, UnitColumn& unit) {
  unit.halves[0] = packed.scale.bits;
  std::memcpy(unit.words, packed.scales, sizeof(packed.scales));
  SuperBlock block;
  unpack(packed, block);
  take_codes(block, 32, unit);
}

void take(const BlockIQ4_XS& packed, int /*b*/, UnitColumn& unit) {
  unit.words[0] = packed.scale.bits | std::uint32_t{packed.scales_high} << 16;
  std::memcpy(unit.words + 1, packed.scales_low, sizeof(packed.scales_low));
  for (int i = 0; i < BlockIQ4_XS::kValues; ++i) {
    const int byte = packed.nibbles[i / 32 * 16 + i % 16];
    unit.codes[i] = static_cast<std::uint8_t>(byte >> (4 * (i / 16 % 2)) & 15);
  }
}

// Reads a unit's blocks of a row, from the block at `k` on.
template <typename Block>
void take_blocks(std::span<const std::byte> row, std::int64_t k, UnitColumn& unit) {
  const std::byte* from =
      row.data() + k / Block::kValues * static_cast<std::int64_t>(sizeof(Block));
  for (int b = 0; b < unit.num_k / Block::kValues; ++b, from += sizeof(Block)) {
    Block block;
    std::memcpy(&block, from, sizeof(Block));
    take(block, b, unit);
  }
}

std::uint32_t number_bits(std::span<const std::byte> numbers, int bytes, std::int64_t i) {
  std::uint32_t bits = 0;
  std::memcpy(&bits, numbers.data() + bytes * i, static_cast<std::size_t>(bytes));
  return bits;
}

void take_affine(const AffineRow& row, std::int64_t k, UnitColumn& unit) {
  const int bytes = traits_of(row.layout.scale_format).block_bytes;
  const std::int64_t first = k / row.layout.group_size;
  for (int g = 0; g < unit.num_k / row.layout.group_size; ++g) {
    const std::uint32_t scale = number_bits(row.scales, bytes, first + g);
    const std::uint32_t bias = number_bits(row.biases, bytes, first + g);
    if (bytes == 2) {
      unit.words[g] = scale | bias << 16;
    } else {
      unit.words[2 * g] = scale;
      unit.words[2 * g + 1] = bias;
    }
  }
  AffineRow part = row;
  const std::int64_t begin = affine_code_bytes(row.layout, k);
  part.codes = row.codes.subspan(begin, affine_code_bytes(row.layout, unit.num_k));
  affine_codes(part, unit.codes);
}

void take_unit(WeightFormat format, std::span<const std::byte> row, std::int64_t k,
               UnitColumn& unit) {
  switch (format) {
    case WeightFormat::kQ8_0:
      return take_blocks<BlockQ8_0>(row, k, unit);
    case WeightFormat::kQ4_0:
      return take_blocks<BlockQ4_0>(row, k, unit);
    case WeightFormat::kQ4_1:
      return take_blocks<BlockQ4_1>(row, k, unit);
    case WeightFormat::kQ5_0:
      return take_blocks<BlockQ5_0>(row, k, unit);
    case WeightFormat::kQ5_1:
      return take_blocks<BlockQ5_1>(row, k, unit);
    case WeightFormat::kQ2_K:
      return take_blocks<BlockQ2_K>(row, k, unit);
    case WeightFormat::kQ3_K:
      return take_blocks<BlockQ3_K>(row, k, unit);
    case WeightFormat::kQ4_K:
      return take_blocks<BlockQ4_K>(row, k, unit);
    case WeightFormat::kQ5_K:
      return take_blocks<BlockQ5_K>(row, k, unit);
    case WeightFormat::kQ6_K:
      return take_blocks<BlockQ6_K>(row, k, unit);
    case WeightFormat::kIQ4_NL:
      return take_blocks<BlockIQ4_NL>(row, k, unit);
    case WeightFormat::kIQ4_XS:
      return take_blocks<BlockIQ4_XS>(row, k, unit);
    case WeightFormat::kMXFP4:
      return take_blocks<BlockMXFP4>(row, k, unit);
    default:
      PAGODA_CHECK(false, "[weight] a format without blocks");
  }
}

// Writes a column's codes of a unit. The widths are template arguments, because loading a model
// spends most of its time here.
template <int kLow, int kHigh>
void put_planes_of(const UnitColumn& unit, int column, std::uint32_t* low, std::uint32_t* high) {
  constexpr int kPerWord = 32 / kLow;
  const int blocks = unit.num_k / kBlockSize;
  const SectionColumn lows(kLow * blocks, column), highs(kHigh * blocks, column);
  for (int b = 0; b < blocks; ++b) {
    const std::uint8_t* const codes = unit.codes + kBlockSize * b;
    std::uint32_t high_words[2] = {};
    for (int i = 0; i < kLow; ++i) {
      std::uint32_t word = 0, above = 0;
      for (int j = 0; j < kPerWord; ++j) {
        const std::uint32_t code = codes[kPerWord * i + j];
        word |= (code & ((1u << kLow) - 1)) << (kLow * j);
        above |= (code >> kLow) << (kLow * j);
      }
      low[lows.index(kLow * b + i)] = word;
      if constexpr (kHigh > 0) {
        const HighPlace place = high_place(kLow, kHigh, kPerWord * i);
        high_words[place.word] |= above << place.bit;
      }
    }
    for (int i = 0; i < kHigh; ++i) high[highs.index(kHigh * b + i)] = high_words[i];
  }
}

void put_planes(const PanelFormat& format, const UnitColumn& unit, int column, std::uint32_t* low,
                std::uint32_t* high) {
  switch (format.bits()) {
    case 2:
      return put_planes_of<2, 0>(unit, column, low, high);
    case 3:
      return put_planes_of<2, 1>(unit, column, low, high);
    case 4:
      return put_planes_of<4, 0>(unit, column, low, high);
    case 5:
      return put_planes_of<4, 1>(unit, column, low, high);
    case 6:
      return put_planes_of<4, 2>(unit, column, low, high);
    default:
      return put_planes_of<8, 0>(unit, column, low, high);
  }
}

void put_unit(const PanelFormat& format, const UnitColumn& unit, int column, std::uint32_t* out) {
  const UnitSections sections(format, unit.num_k);
  const int halves = format.halves(unit.num_k), words = format.words(unit.num_k);
  auto* const half = reinterpret_cast<std::byte*>(out) + std::ptrdiff_t{2} * halves * column;
  if (halves > 0) std::memcpy(half, unit.halves, std::size_t{2} * halves);
  const SectionColumn numbers(words, column);
  for (int i = 0; i < words; ++i) out[sections.words + numbers.index(i)] = unit.words[i];
  put_planes(format, unit, column, out + sections.low, out + sections.high);
}

// Packs plain types in pieces of 16 bytes. A column's pieces are 512 bytes apart.
void pack_plain(std::span<const std::byte> row, int column, std::uint32_t* panel) {
  constexpr std::size_t kBytes = 16;
  auto* out = reinterpret_cast<std::byte*>(panel) + kBytes * static_cast<std::size_t>(column);
  for (std::size_t at = 0; at < row.size(); at += kBytes, out += kBytes * kPanelColumns) {
    const std::size_t count = std::min(kBytes, row.size() - at);
    std::memcpy(out, row.data() + at, count);
    std::memset(out + count, 0, kBytes - count);
  }
}

}  // namespace

void pack_column(const HostTensor& matrix, std::int64_t row, int column, std::uint32_t* panel) {
  const PanelFormat format = panel_format_of(matrix);
  const std::int64_t cols = matrix.shape[1];
  std::vector<std::byte> scratch;
  std::span<const std::byte> bytes;
  if (!format.is_affine()) bytes = row_bytes(matrix, row, scratch);
  if (format.is_plain()) return pack_plain(bytes, column, panel);
  for (std::int64_t k = 0; k < cols; k += format.unit()) {
    UnitColumn unit;
    unit.num_k = static_cast<int>(std::min<std::int64_t>(format.unit(), cols - k));
    if (format.is_affine()) {
      take_affine(affine_row(matrix, row), k, unit);
    } else {
      take_unit(matrix.format, bytes, k, unit);
    }
    put_unit(format, unit, column, panel);
    panel += format.unit_words(unit.num_k);
  }
}

}  // namespace pagoda::gpu
