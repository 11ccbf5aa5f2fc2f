#include "quant/affine.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <iterator>

namespace pagoda {
namespace {

static_assert(std::endian::native == std::endian::little, "words are read as they lie");

// Unpacks the integers of whole words.
void unpack(int bits, std::span<const std::byte> words, std::uint8_t* codes) {
  const std::uint32_t mask = (1u << bits) - 1;
  std::uint64_t pending = 0;  // bits read but not written; those of the next code are the lowest
  int num_pending = 0;
  for (std::size_t at = 0; at + sizeof(std::uint32_t) <= words.size();
       at += sizeof(std::uint32_t)) {
    std::uint32_t word;
    std::memcpy(&word, words.data() + at, sizeof(word));
    pending |= std::uint64_t{word} << num_pending;
    num_pending += 32;
    for (; num_pending >= bits; num_pending -= bits, pending >>= bits) {
      *codes++ = static_cast<std::uint8_t>(pending & mask);
    }
  }
}

float number_at(WeightFormat format, std::span<const std::byte> numbers, std::size_t i) {
  const auto bytes = static_cast<std::size_t>(traits_of(format).block_bytes);
  float value;
  traits_of(format).dequantize(numbers.subspan(i * bytes, bytes), &value);
  return value;
}

bool contains(std::span<const int> widths, int width) {
  return std::find(widths.begin(), widths.end(), width) != widths.end();
}

}  // namespace

bool is_affine_layout(const AffineLayout& layout) {
  static constexpr int kBits[] = {2, 3, 4, 5, 6, 8};
  static constexpr int kGroupSizes[] = {32, 64, kMaxAffineGroup};
  return contains(kBits, layout.bits) && contains(kGroupSizes, layout.group_size) &&
         (layout.scale_format == WeightFormat::kF32 || layout.scale_format == WeightFormat::kF16 ||
          layout.scale_format == WeightFormat::kBF16);
}

std::int64_t affine_code_bytes(const AffineLayout& layout, std::int64_t cols) {
  return cols / 8 * layout.bits;
}

std::int64_t affine_scale_bytes(const AffineLayout& layout, std::int64_t cols) {
  return packed_bytes(layout.scale_format, cols / layout.group_size);
}

void affine_codes(const AffineRow& row, std::uint8_t* codes) {
  unpack(row.layout.bits, row.codes, codes);
}

void affine_scales(const AffineRow& row, float* scales) {
  traits_of(row.layout.scale_format).dequantize(row.scales, scales);
}

void affine_biases(const AffineRow& row, float* biases) {
  traits_of(row.layout.scale_format).dequantize(row.biases, biases);
}

void dequantize_affine_row(const AffineRow& row, float* values) {
  const auto group_size = static_cast<std::size_t>(row.layout.group_size);
  const std::size_t group_bytes = group_size / 8 * static_cast<std::size_t>(row.layout.bits);
  std::uint8_t codes[kMaxAffineGroup];
  for (std::size_t group = 0; group < row.codes.size() / group_bytes; ++group) {
    unpack(row.layout.bits, row.codes.subspan(group * group_bytes, group_bytes), codes);
    const float scale = number_at(row.layout.scale_format, row.scales, group);
    const float bias = number_at(row.layout.scale_format, row.biases, group);
    for (std::size_t i = 0; i < group_size; ++i) {
      *values++ = scale * static_cast<float>(codes[i]) + bias;
    }
  }
}

}  // namespace pagoda
