#include "backend/cpu/panel_layout.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>
#include <limits>
#include <vector>

#include "backend/cpu/six_bit_words.h"
#include "core/half.h"
#include "quant/iq4_xs.h"
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

namespace pagoda::cpu {
namespace {

constexpr int kColumns = kPanelColumns;
constexpr int kHalvesBytes = 2 * kColumns;  // a row of f16
constexpr int kMostCodes = 256;

using Codes = std::uint8_t[kMostCodes];

std::uint32_t load_word(const std::byte* from) {
  std::uint32_t word;
  std::memcpy(&word, from, sizeof(word));
  return word;
}

void store_half(std::byte* row, int column, f16 value) {
  std::memcpy(row + 2 * column, &value, sizeof(value));
}

float load_half(const std::byte* row, int column) {
  f16 value;
  std::memcpy(&value, row + 2 * column, sizeof(value));
  return to_float(value);
}

// Puts bits [shift, shift + kBits) of a group's codes into a plane; add_plane() reads them.
template <int kBits>
void put_plane(const std::uint8_t* codes, int group, int shift, int column, std::byte* plane) {
  constexpr int kCodes = 16 / kBits;  // per half-word
  constexpr std::uint32_t kMask = (1u << kBits) - 1;
  for (int line = 0; line < group * kBits / 32; ++line) {
    const std::uint8_t* from = codes + line * 2 * kCodes;
    std::uint32_t word = 0;
    for (int j = 0; j < kCodes; ++j) {
      word |= (from[2 * j] >> shift & kMask) << (kBits * j);
      word |= (from[2 * j + 1] >> shift & kMask) << (16 + kBits * j);
    }
    std::memcpy(plane + line * kLineBytes + 4 * column, &word, sizeof(word));
  }
}

template <int kBits>
void add_plane(const std::byte* plane, int group, int shift, int column, std::uint8_t* codes) {
  constexpr int kCodes = 16 / kBits;
  constexpr std::uint32_t kMask = (1u << kBits) - 1;
  for (int line = 0; line < group * kBits / 32; ++line) {
    const std::uint32_t word = load_word(plane + line * kLineBytes + 4 * column);
    std::uint8_t* to = codes + line * 2 * kCodes;
    for (int j = 0; j < kCodes; ++j) {
      to[2 * j] |= static_cast<std::uint8_t>((word >> (kBits * j) & kMask) << shift);
      to[2 * j + 1] |= static_cast<std::uint8_t>((word >> (16 + kBits * j) & kMask) << shift);
    }
  }
}

template <PanelKind kKind>
void put_codes(const std::uint8_t* codes, int column, std::byte* group) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  std::byte* low = group + kFormat.low_plane();
  put_plane<kFormat.low_bits>(codes, kFormat.group, 0, column, low);
  if constexpr (kFormat.high_bits > 0) {
    put_plane<kFormat.high_bits>(codes, kFormat.group, kFormat.low_bits, column,
                                 group + kFormat.high_plane());
  }
}

template <PanelKind kKind>
void get_codes(const std::byte* group, int column, std::uint8_t* codes) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  std::memset(codes, 0, kFormat.group);
  add_plane<kFormat.low_bits>(group + kFormat.low_plane(), kFormat.group, 0, column, codes);
  if constexpr (kFormat.high_bits > 0) {
    add_plane<kFormat.high_bits>(group + kFormat.high_plane(), kFormat.group, kFormat.low_bits,
                                 column, codes);
  }
}

// The functions below read the unsigned codes of a file's block.

int nibble(const std::uint8_t* nibbles, int i, int half) {
  return i < half ? nibbles[i] & 15 : nibbles[i - half] >> 4;
}

template <typename Block>
void codes_of(const Block& block, std::uint8_t* codes)
  requires(Block::kValues == 32)
{
  for (int i = 0; i < 32; ++i) {
    if constexpr (requires { block.q(i); }) {
      codes[i] = static_cast<std::uint8_t>(block.q(i));
    } else if constexpr (requires { block.nibbles; }) {
      codes[i] = static_cast<std::uint8_t>(nibble(block.nibbles, i, 16));
    } else {
      codes[i] = static_cast<std::uint8_t>(block.q[i]);
    }
  }
}

// Packs formats with blocks of 32 values: kBlocks blocks per group.
template <PanelKind kKind, typename Block>
void put_small_blocks(const std::byte* row, std::int64_t cols, int column, std::byte* panel) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  constexpr int kBlocks = kFormat.group / 32;
  const std::int64_t num_blocks = cols / 32;
  for (std::int64_t first = 0; first < num_blocks; first += kBlocks) {
    Codes codes = {};
    for (int b = 0; b < kBlocks && first + b < num_blocks; ++b) {
      Block block;
      std::memcpy(&block, row + (first + b) * sizeof(Block), sizeof(Block));
      codes_of(block, codes + 32 * b);
      store_half(panel + b * kHalvesBytes, column, block.scale);
      if constexpr (kFormat.has_minimum()) store_half(panel + kHalvesBytes, column, block.minimum);
    }
    put_codes<kKind>(codes, column, panel);
    panel += kFormat.group_bytes();
  }
}

void store_words(std::byte* words, int column, const std::uint32_t (&values)[3]) {
  for (int i = 0; i < 3; ++i) {
    std::memcpy(words + i * kLineBytes + 4 * column, &values[i], sizeof(std::uint32_t));
  }
}

void put_six_bit(const SuperBlock& block, int column, std::byte* words) {
  std::uint32_t values[3] = {};
  for (int b = 0; b < 5; ++b) {
    values[0] |= static_cast<std::uint32_t>(block.scales[b]) << (6 * b);
    values[1] |= static_cast<std::uint32_t>(block.minima[b]) << (6 * b);
  }
  for (int b = 5; b < 7; ++b) {
    values[2] |= static_cast<std::uint32_t>(block.scales[b]) << (6 * (b - 5));
    values[2] |= static_cast<std::uint32_t>(block.minima[b]) << (12 + 6 * (b - 5));
  }
  const auto scale = static_cast<std::uint32_t>(block.scales[7]);
  const auto minimum = static_cast<std::uint32_t>(block.minima[7]);
  values[2] |= (scale & 15) << 24 | (minimum & 15) << 28;
  values[0] |= (scale >> 4) << 30;
  values[1] |= (minimum >> 4) << 30;
  store_words(words, column, values);
}

SixBitNumbers<std::uint32_t> get_six_bit(const std::byte* words, int column, int b) {
  const auto word = [&](int i) { return load_word(words + i * kLineBytes + 4 * column); };
  return six_bit_numbers(word(0), word(1), word(2), static_cast<std::uint32_t>(b));
}

struct BlockNumbers {
  int scale;
  int minimum;
};

void put_minimum_scale(const auto& packed, int column, std::byte* group) {
  if constexpr (requires { packed.minimum_scale; }) {
    store_half(group + kHalvesBytes, column, packed.minimum_scale);
  }
}

void put_mxfp4(const PanelLayout& layout, const std::byte* row, int column, std::byte* panel) {
  constexpr PanelFormat kFormat = panel_format(PanelKind::kMXFP4);
  std::byte* group = panel + layout.header_area();
  for (std::int64_t b = 0; b < layout.cols / kUnit; ++b, group += kFormat.group_bytes()) {
    BlockMXFP4 block;
    std::memcpy(&block, row + b * sizeof(block), sizeof(block));
    Codes codes;
    codes_of(block, codes);
    panel[b * kColumns + column] = static_cast<std::byte>(block.exponent);
    put_codes<PanelKind::kMXFP4>(codes, column, group);
  }
}

// Packs formats with blocks of 256 values: one block per group.
template <PanelKind kKind, typename Block>
void put_super_blocks(const std::byte* row, std::int64_t cols, int column, std::byte* panel) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  for (std::int64_t b = 0; b < cols / 256; ++b, panel += kFormat.group_bytes()) {
    Block packed;
    std::memcpy(&packed, row + b * sizeof(Block), sizeof(Block));
    SuperBlock block;
    unpack(packed, block);
    store_half(panel, column, packed.scale);
    put_minimum_scale(packed, column, panel);
    std::byte* numbers = panel + 2 * kHalvesBytes;
    for (int i = 0; i < 256 / kFormat.block; ++i) {
      const int minimum = kFormat.header == PanelHeader::kNibbles ? block.minima[i] << 4 : 0;
      if constexpr (kFormat.header != PanelHeader::kSixBit) {
        numbers[i * kColumns + column] = static_cast<std::byte>(block.scales[i] | minimum);
      }
    }
    if constexpr (kFormat.header == PanelHeader::kSixBit) put_six_bit(block, column, numbers);
    Codes codes;
    for (int i = 0; i < 256; ++i) {
      if constexpr (kKind == PanelKind::kIQ4_XS) {
        codes[i] = static_cast<std::uint8_t>(nibble(packed.nibbles + i / 32 * 16, i % 32, 16));
      } else {
        codes[i] = static_cast<std::uint8_t>(block.q[i] - code_value(kKind, 0));
      }
    }
    put_codes<kKind>(codes, column, panel);
  }
}

template <PanelKind kKind>
void put_affine(const PanelLayout& layout, const HostTensor& matrix, std::int64_t row, int column,
                std::byte* panel) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  const AffineRow source = affine_row(matrix, row);
  for (std::int64_t g = 0; g < layout.header_area() / kLineBytes; ++g) {
    std::memcpy(panel + g * kLineBytes + 2 * column, source.scales.data() + 2 * g, 2);
    std::memcpy(panel + g * kLineBytes + kHalvesBytes + 2 * column, source.biases.data() + 2 * g,
                2);
  }
  std::vector<std::uint8_t> codes(layout.cols);
  affine_codes(source, codes.data());
  std::byte* group = panel + layout.header_area();
  for (std::int64_t k = 0; k < layout.cols; k += kUnit, group += kFormat.group_bytes()) {
    put_codes<kKind>(codes.data() + k, column, group);
  }
}

void put_float32(const std::byte* row, std::int64_t cols, int column, std::byte* panel) {
  for (std::int64_t k = 0; k < cols; ++k) {
    std::memcpy(panel + (k * kColumns + column) * 4, row + k * 4, 4);
  }
}

void get_float32(const std::byte* panel, std::int64_t cols, int column, float* values) {
  for (std::int64_t k = 0; k < cols; ++k) {
    std::memcpy(values + k, panel + (k * kColumns + column) * 4, 4);
  }
}

// Returns the least power of two, but at least `least`, that scales values up to `largest` to
// integers of 14 bits. Returns NaN if `largest` is not finite, so that every product is NaN.
float power_for(float largest, float least) {
  if (!std::isfinite(largest)) return std::numeric_limits<float>::quiet_NaN();
  if (largest == 0) return least;
  return std::max(std::ldexp(1.0f, std::max(std::ilogb(largest) - 12, -126)), least);
}

// Rounds to the nearest integer, ties to even. The magnitude is below 2^22, so that the last bit of
// the sum has the value one.
std::int32_t round_to_integer(float value) {
  constexpr float kOnes = 12582912.0f;  // 1.5 * 2^23
  return static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(value + kOnes) -
                                   std::bit_cast<std::uint32_t>(kOnes));
}

// Returns the largest magnitude. It compares magnitudes by their bits, so that NaN is the largest.
template <typename Element>
float largest_magnitude(const std::byte* row, std::int64_t cols) {
  constexpr std::int64_t kAtOnce = 64;
  std::uint32_t largest = 0;
  for (std::int64_t k = 0; k < cols; k += kAtOnce) {
    const auto count = static_cast<std::size_t>(std::min(cols - k, kAtOnce));
    Element elements[kAtOnce] = {};
    std::memcpy(elements, row + k * sizeof(Element), count * sizeof(Element));
    for (const Element element : elements) {
      largest = std::max(largest, std::bit_cast<std::uint32_t>(to_float(element)) & 0x7fffffffu);
    }
  }
  return std::bit_cast<float>(largest);
}

// Writes up to 64 values of a row as integers with one power, which is at least `least`. A quarter
// of a large checkpoint's load time is spent here, so compilers must be able to vectorize the
// loops.
template <typename Element>
void put_int14_group(const std::byte* row, std::int64_t count, float least, int column,
                     std::byte* group) {
  constexpr PanelFormat kFormat = panel_format(PanelKind::kInt14);
  Element elements[64] = {};
  std::memcpy(elements, row, static_cast<std::size_t>(count) * sizeof(Element));
  float values[64];
  // The bits of a magnitude: they have the order of the magnitudes, with NaN as the largest.
  std::uint32_t largest = 0;
  for (int i = 0; i < 64; ++i) {
    values[i] = to_float(elements[i]);
    largest = std::max(largest, std::bit_cast<std::uint32_t>(values[i]) & 0x7fffffffu);
  }
  const float power = power_for(std::bit_cast<float>(largest), least);
  std::memcpy(group + 4 * column, &power, sizeof(power));
  const float inverse = power > 0 ? 1.0f / power : 0.0f;  // exact
  std::uint32_t pairs[32];
  for (int i = 0; i < 32; ++i) {
    const std::int32_t low = round_to_integer(values[2 * i] * inverse);
    const std::int32_t high = round_to_integer(values[2 * i + 1] * inverse);
    pairs[i] = (static_cast<std::uint32_t>(low) & 0xffffu) | static_cast<std::uint32_t>(high) << 16;
  }
  std::byte* lines = group + kFormat.low_plane() + 4 * column;
  for (int i = 0; i < 32; ++i) std::memcpy(lines + i * kLineBytes, &pairs[i], 4);
}

template <typename Element>
void put_int14(const std::byte* row, std::int64_t cols, int column, std::byte* panel) {
  constexpr PanelFormat kFormat = panel_format(PanelKind::kInt14);
  constexpr float kSmallest = std::numeric_limits<float>::min();
  const float most = power_for(largest_magnitude<Element>(row, cols), 0.0f);
  const float least = most > 0 ? std::max(std::ldexp(most, -kPowersRange), kSmallest) : 0.0f;
  const float header = std::isfinite(most) ? least : most;
  std::memcpy(panel + 4 * column, &header, sizeof(header));
  panel += kLineBytes;
  for (std::int64_t first = 0; first < cols; first += kPowersSpan) {
    const std::int64_t end = std::min<std::int64_t>(cols, first + kPowersSpan);
    const std::byte* of_span = row + first * sizeof(Element);
    const float largest = power_for(largest_magnitude<Element>(of_span, end - first), least);
    const float least_of_span = std::max(largest / kPowersRangeOfSpan, least);
    for (std::int64_t k = first; k < end; k += 64, panel += kFormat.group_bytes()) {
      put_int14_group<Element>(row + k * sizeof(Element), std::min<std::int64_t>(end - k, 64),
                               least_of_span, column, panel);
    }
  }
}

void get_int14(const std::byte* panel, std::int64_t cols, int column, float* values) {
  constexpr PanelFormat kFormat = panel_format(PanelKind::kInt14);
  for (std::int64_t k = 0; k < cols; ++k) {
    const std::byte* group = panel + kLineBytes + k / 64 * kFormat.group_bytes();
    float power;
    std::memcpy(&power, group + 4 * column, sizeof(power));
    const std::byte* line = group + kFormat.low_plane() + k % 64 / 2 * kLineBytes;
    const std::uint32_t pair = load_word(line + 4 * column);
    const auto code = static_cast<std::int16_t>(pair >> (16 * (k % 2)));
    values[k] = power * static_cast<float>(code);
  }
}

void put_decoded(const HostTensor& matrix, std::int64_t row, int column, std::byte* panel) {
  std::vector<float> values(matrix.shape[1]);
  dequantize_affine_row(affine_row(matrix, row), values.data());
  put_float32(reinterpret_cast<const std::byte*>(values.data()), matrix.shape[1], column, panel);
}

// A block's scale and minimum, rounded as the scalar codecs round them.
struct Affine {
  float scale = 0;
  float minimum = 0;
};

template <PanelKind kKind>
Affine block_affine(const PanelLayout& layout, const std::byte* panel, const std::byte* group,
                    std::int64_t k, int column) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  const int b = static_cast<int>(k % kFormat.group / kFormat.block);
  const std::byte* numbers = group + 2 * kHalvesBytes;
  if constexpr (kFormat.header == PanelHeader::kScales) {
    return {load_half(group + b * kHalvesBytes, column)};
  } else if constexpr (kFormat.header == PanelHeader::kScalesMinima) {
    return {load_half(group, column), load_half(group + kHalvesBytes, column)};
  } else if constexpr (kFormat.header == PanelHeader::kExponents) {
    return {mxfp4_scale(static_cast<std::uint8_t>(panel[k / kUnit * kColumns + column]))};
  } else if constexpr (kFormat.header == PanelHeader::kAffine) {
    const std::byte* header = panel + k / kUnit / layout.units_of_header * kLineBytes;
    if (!layout.header_is_bfloat16) {
      return {load_half(header, column), load_half(header + kHalvesBytes, column)};
    }
    bf16 numbers_of[2];
    std::memcpy(&numbers_of[0], header + 2 * column, 2);
    std::memcpy(&numbers_of[1], header + kHalvesBytes + 2 * column, 2);
    return {to_float(numbers_of[0]), to_float(numbers_of[1])};
  } else {
    BlockNumbers of_block = {};
    if constexpr (kFormat.header == PanelHeader::kSixBit) {
      const auto [scale, minimum] = get_six_bit(numbers, column, b);
      of_block = {static_cast<int>(scale), static_cast<int>(minimum)};
    } else if constexpr (kFormat.header == PanelHeader::kNibbles) {
      const int both = static_cast<int>(numbers[b * kColumns + column]);
      of_block = {both & 15, both >> 4};
    } else {
      of_block = {static_cast<std::int8_t>(numbers[b * kColumns + column]), 0};
    }
    const float scale = load_half(group, column) * static_cast<float>(of_block.scale);
    if constexpr (!kFormat.has_minimum()) return {scale};
    const float minimum_scale = load_half(group + kHalvesBytes, column);
    return {scale, -(minimum_scale * static_cast<float>(of_block.minimum))};
  }
}

template <PanelKind kKind>
void get_blocks(const PanelLayout& layout, const std::byte* panel, int column, float* values) {
  constexpr PanelFormat kFormat = panel_format(kKind);
  const std::byte* group = panel + layout.header_area();
  for (std::int64_t k = 0; k < layout.cols; group += kFormat.group_bytes()) {
    Codes codes;
    get_codes<kKind>(group, column, codes);
    const std::int64_t end = k + kFormat.group < layout.cols ? k + kFormat.group : layout.cols;
    const std::int64_t first = k;
    while (k < end) {
      const Affine block = block_affine<kKind>(layout, panel, group, k, column);
      for (int i = 0; i < kFormat.block; ++i, ++k) {
        const float product = block.scale * static_cast<float>(code_value(kKind, codes[k - first]));
        values[k] = kFormat.has_minimum() ? product + block.minimum : product;
      }
    }
  }
}

void put_affine_row(const PanelLayout& layout, const HostTensor& matrix, std::int64_t row,
                    int column, std::byte* panel) {
  with_kind(layout.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind == PanelKind::kF32) put_decoded(matrix, row, column, panel);
    if constexpr (panel_format(kKind).header == PanelHeader::kAffine) {
      put_affine<kKind>(layout, matrix, row, column, panel);
    }
  });
}

void put_row(const PanelLayout& layout, const HostTensor& matrix, std::int64_t row, int column,
             std::vector<std::byte>& scratch, std::byte* panel) {
  const std::int64_t cols = layout.cols;
  if (matrix.format == WeightFormat::kAffine) {
    return put_affine_row(layout, matrix, row, column, panel);
  }
  const std::byte* from = row_bytes(matrix, row, scratch).data();
  switch (layout.kind) {
    case PanelKind::kF32:
      return put_float32(from, cols, column, panel);
    case PanelKind::kInt14:
      return matrix.format == WeightFormat::kF16 ? put_int14<f16>(from, cols, column, panel)
                                                 : put_int14<bf16>(from, cols, column, panel);
    case PanelKind::kQ8_0:
      return put_small_blocks<PanelKind::kQ8_0, BlockQ8_0>(from, cols, column, panel);
    case PanelKind::kQ4_0:
      return put_small_blocks<PanelKind::kQ4_0, BlockQ4_0>(from, cols, column, panel);
    case PanelKind::kQ4_1:
      return put_small_blocks<PanelKind::kQ4_1, BlockQ4_1>(from, cols, column, panel);
    case PanelKind::kQ5_0:
      return put_small_blocks<PanelKind::kQ5_0, BlockQ5_0>(from, cols, column, panel);
    case PanelKind::kQ5_1:
      return put_small_blocks<PanelKind::kQ5_1, BlockQ5_1>(from, cols, column, panel);
    case PanelKind::kIQ4_NL:
      return put_small_blocks<PanelKind::kIQ4_NL, BlockIQ4_NL>(from, cols, column, panel);
    case PanelKind::kQ2_K:
      return put_super_blocks<PanelKind::kQ2_K, BlockQ2_K>(from, cols, column, panel);
    case PanelKind::kQ3_K:
      return put_super_blocks<PanelKind::kQ3_K, BlockQ3_K>(from, cols, column, panel);
    case PanelKind::kQ4_K:
      return put_super_blocks<PanelKind::kQ4_K, BlockQ4_K>(from, cols, column, panel);
    case PanelKind::kQ5_K:
      return put_super_blocks<PanelKind::kQ5_K, BlockQ5_K>(from, cols, column, panel);
    case PanelKind::kQ6_K:
      return put_super_blocks<PanelKind::kQ6_K, BlockQ6_K>(from, cols, column, panel);
    case PanelKind::kIQ4_XS:
      return put_super_blocks<PanelKind::kIQ4_XS, BlockIQ4_XS>(from, cols, column, panel);
    case PanelKind::kMXFP4:
      return put_mxfp4(layout, from, column, panel);
    default:
      return;  // kAffine was handled above
  }
}

PanelKind kind_of(WeightFormat format) {
  switch (format) {
    case WeightFormat::kF32:
    case WeightFormat::kAffine:
      return PanelKind::kF32;
    case WeightFormat::kF16:
    case WeightFormat::kBF16:
      return PanelKind::kInt14;
    case WeightFormat::kQ8_0:
      return PanelKind::kQ8_0;
    case WeightFormat::kQ4_0:
      return PanelKind::kQ4_0;
    case WeightFormat::kQ4_1:
      return PanelKind::kQ4_1;
    case WeightFormat::kQ5_0:
      return PanelKind::kQ5_0;
    case WeightFormat::kQ5_1:
      return PanelKind::kQ5_1;
    case WeightFormat::kQ2_K:
      return PanelKind::kQ2_K;
    case WeightFormat::kQ3_K:
      return PanelKind::kQ3_K;
    case WeightFormat::kQ4_K:
      return PanelKind::kQ4_K;
    case WeightFormat::kQ5_K:
      return PanelKind::kQ5_K;
    case WeightFormat::kQ6_K:
      return PanelKind::kQ6_K;
    case WeightFormat::kIQ4_NL:
      return PanelKind::kIQ4_NL;
    case WeightFormat::kIQ4_XS:
      return PanelKind::kIQ4_XS;
    case WeightFormat::kMXFP4:
      return PanelKind::kMXFP4;
  }
  return PanelKind::kF32;
}

PanelKind affine_kind(int bits) {
  switch (bits) {
    case 2:
      return PanelKind::kAffine2;
    case 3:
      return PanelKind::kAffine3;
    case 4:
      return PanelKind::kAffine4;
    case 5:
      return PanelKind::kAffine5;
    case 6:
      return PanelKind::kAffine6;
    default:
      return PanelKind::kAffine8;
  }
}

}  // namespace

std::int64_t PanelLayout::header_area() const {
  const PanelHeader header = panel_format(kind).header;
  if (header == PanelHeader::kPowers) return kLineBytes;
  if (header == PanelHeader::kExponents) {
    const std::int64_t bytes = panel_format(kind).num_groups(cols) * kPanelColumns;
    return (bytes + kLineBytes - 1) / kLineBytes * kLineBytes;
  }
  if (header != PanelHeader::kAffine) return 0;
  return cols / (kUnit * units_of_header) * kLineBytes;
}

std::int64_t PanelLayout::panel_bytes() const {
  const PanelFormat format = panel_format(kind);
  return header_area() + format.num_groups(cols) * format.group_bytes();
}

PanelLayout panel_layout_of(const HostTensor& matrix) {
  PanelLayout layout = {.cols = matrix.shape[1]};
  if (matrix.format != WeightFormat::kAffine) {
    layout.kind = kind_of(matrix.format);
    return layout;
  }
  const AffineLayout& affine = matrix.affine->layout;
  if (affine.scale_format == WeightFormat::kF32) return layout;
  layout.kind = affine_kind(affine.bits);
  layout.units_of_header = affine.group_size / kUnit;
  layout.header_is_bfloat16 = affine.scale_format == WeightFormat::kBF16;
  return layout;
}

void pack_panel(const PanelLayout& layout, const HostTensor& matrix, std::int64_t first_row,
                int num_rows, std::byte* panel) {
  // Fresh pages are zero, but memory that is packed again is not.
  std::memset(panel, 0, static_cast<std::size_t>(layout.panel_bytes()));
  std::vector<std::byte> scratch;
  for (int i = 0; i < num_rows; ++i) put_row(layout, matrix, first_row + i, i, scratch, panel);
}

void unpack_column(const PanelLayout& layout, const std::byte* panel, int column, float* values) {
  with_kind(layout.kind, [&](auto kind) {
    constexpr PanelKind kKind = decltype(kind)::kValue;
    if constexpr (kKind == PanelKind::kF32) {
      get_float32(panel, layout.cols, column, values);
    } else if constexpr (kKind == PanelKind::kInt14) {
      get_int14(panel, layout.cols, column, values);
    } else {
      get_blocks<kKind>(layout, panel, column, values);
    }
  });
}

}  // namespace pagoda::cpu
