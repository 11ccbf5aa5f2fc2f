// Unpacks columns of panels to values. Kernels are tested against this definition.
#include <algorithm>
#include <cstring>
#include <span>

#include "backend/gpu/panel_unit.h"
#include "core/half.h"
#include "quant/iq4_nl.h"
#include "quant/mxfp4.h"

namespace pagoda::gpu {
namespace {

void unpack_plain(const PanelFormat& format, const std::uint32_t* panel, std::int64_t cols,
                  int column, float* values) {
  constexpr std::int64_t kBytes = 16;
  const auto* from = reinterpret_cast<const std::byte*>(panel) + kBytes * column;
  const std::int64_t per_piece = kBytes / traits_of(format.format).block_bytes;
  for (std::int64_t k = 0; k < cols; k += per_piece, from += kBytes * kPanelColumns) {
    const std::int64_t count = std::min(per_piece, cols - k);
    const auto bytes = static_cast<std::size_t>(count * traits_of(format.format).block_bytes);
    traits_of(format.format).dequantize({from, bytes}, values + k);
  }
}

// The numbers of a group: value = scale * (code - zero) + offset.
struct GroupNumbers {
  float scale = 1;
  float offset = 0;
};

float low_half(std::uint32_t word) {
  return to_float(f16{static_cast<std::uint16_t>(word)});
}
float high_half(std::uint32_t word) {
  return to_float(f16{static_cast<std::uint16_t>(word >> 16)});
}

GroupNumbers affine_numbers(const AffineLayout& layout, const UnitColumn& unit, int g) {
  const auto read = [&](std::uint32_t bits) {
    float value;
    const auto bytes = static_cast<std::size_t>(traits_of(layout.scale_format).block_bytes);
    traits_of(layout.scale_format)
        .dequantize(std::as_bytes(std::span(&bits, 1)).first(bytes), &value);
    return value;
  };
  if (layout.scale_format == WeightFormat::kF32) {
    return {read(unit.words[2 * g]), read(unit.words[2 * g + 1])};
  }
  return {read(unit.words[g]), read(unit.words[g] >> 16)};
}

int scale_of_six_bits(const std::uint32_t* low, std::uint32_t high, int g) {
  return static_cast<int>((low[g / 8] >> (4 * (g % 8)) & 15) | (high >> (2 * g) & 3) << 4);
}

GroupNumbers numbers_of(const PanelFormat& format, const UnitColumn& unit, int g) {
  const float d = low_half(unit.halves[0]);
  const std::uint32_t* const words = unit.words;
  switch (format.format) {
    case WeightFormat::kAffine:
      return affine_numbers(format.affine, unit, g);
    case WeightFormat::kQ4_1:
    case WeightFormat::kQ5_1:
      return {low_half(words[g]), high_half(words[g])};
    case WeightFormat::kQ2_K: {
      const std::uint32_t byte = words[g / 4] >> (8 * (g % 4)) & 255;
      return {low_half(words[4]) * static_cast<float>(byte & 15),
              -(high_half(words[4]) * static_cast<float>(byte >> 4))};
    }
    case WeightFormat::kQ3_K:
      return {d * static_cast<float>(scale_of_six_bits(words, words[2], g) - 32)};
    case WeightFormat::kQ4_K:
    case WeightFormat::kQ5_K:
      return {low_half(words[0]) *
                  static_cast<float>(scale_of_six_bits(words + 1, words[3] & 0xffff, g)),
              -(high_half(words[0]) *
                static_cast<float>(scale_of_six_bits(words + 2, words[3] >> 16, g)))};
    case WeightFormat::kQ6_K:
      return {d * static_cast<float>(static_cast<std::int8_t>(words[g / 4] >> (8 * (g % 4))))};
    case WeightFormat::kIQ4_XS:
      return {low_half(words[0]) *
              static_cast<float>(scale_of_six_bits(words + 1, words[0] >> 16, g) - 32)};
    case WeightFormat::kMXFP4:
      return {mxfp4_scale(static_cast<std::uint8_t>(unit.halves[g / 2] >> (8 * (g % 2))))};
    default:
      return {low_half(unit.halves[g])};
  }
}

// Returns the value that a code stands for under a scale of one.
int value_of_code(const PanelFormat& format, int code) {
  switch (format.format) {
    case WeightFormat::kIQ4_NL:
    case WeightFormat::kIQ4_XS:
      return kIq4Levels[code];
    case WeightFormat::kMXFP4:
      return kMxfp4Levels[code];
    default:
      return code - format.zero();
  }
}

void get_unit(const PanelFormat& format, const std::uint32_t* in, int column, UnitColumn& unit) {
  const UnitSections sections(format, unit.num_k);
  const int halves = format.halves(unit.num_k), words = format.words(unit.num_k);
  const auto* const half =
      reinterpret_cast<const std::byte*>(in) + std::ptrdiff_t{2} * halves * column;
  if (halves > 0) std::memcpy(unit.halves, half, std::size_t{2} * halves);
  const SectionColumn numbers(words, column);
  for (int i = 0; i < words; ++i) unit.words[i] = in[sections.words + numbers.index(i)];
  const int low_bits = format.low_bits(), high_bits = format.high_bits();
  const int blocks = unit.num_k / kBlockSize, per_word = 32 / low_bits;
  const SectionColumn lows(low_bits * blocks, column), highs(high_bits * blocks, column);
  for (int k = 0; k < unit.num_k; ++k) {
    std::uint32_t code =
        in[sections.low + lows.index(k / per_word)] >> (low_bits * (k % per_word)) &
        ((1u << low_bits) - 1);
    if (high_bits > 0) {
      const HighPlace place = high_place(low_bits, high_bits, k % kBlockSize);
      const std::uint32_t word =
          in[sections.high + highs.index(k / kBlockSize * high_bits + place.word)];
      code |= (word >> place.bit & ((1u << high_bits) - 1)) << low_bits;
    }
    unit.codes[k] = static_cast<std::uint8_t>(code);
  }
}

}  // namespace

void unpack_column(const PanelFormat& format, const std::uint32_t* panel, std::int64_t cols,
                   int column, float* values) {
  if (format.is_plain()) return unpack_plain(format, panel, cols, column, values);
  for (std::int64_t first = 0; first < cols; first += format.unit()) {
    UnitColumn unit;
    unit.num_k = static_cast<int>(std::min<std::int64_t>(format.unit(), cols - first));
    get_unit(format, panel, column, unit);
    for (int k = 0; k < unit.num_k; ++k) {
      const GroupNumbers numbers = numbers_of(format, unit, k / format.group());
      const float product =
          numbers.scale * static_cast<float>(value_of_code(format, unit.codes[k]));
      values[first + k] = format.has_offset() ? product + numbers.offset : product;
    }
    panel += format.unit_words(unit.num_k);
  }
}

}  // namespace pagoda::gpu
