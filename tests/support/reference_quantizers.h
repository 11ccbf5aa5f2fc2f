// Quantisers into every format, for tests: float32 values into a checkpoint format's bytes. They
// are those of src/quant if it has one. Q4_1 and Q5_1 round as ggml's reference quantisers do, the
// others in the plainest way.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/half.h"
#include "quant/block_loop.h"
#include "quant/iq4_nl.h"
#include "quant/mxfp4.h"
#include "quant/q4_1.h"
#include "quant/q5_1.h"
#include "quant/weight_format.h"
#include "tests/support/super_block_quantizers.h"

namespace pagoda::testing {

inline std::uint8_t nibble(float x) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(x), 0, 15));
}

inline BlockQ4_1 quantize_block_q4_1(std::span<const float> x) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const float minimum = *low;
  const float scale = (*high - minimum) / 15;
  const float inverse = reciprocal_or_zero(scale);
  BlockQ4_1 block{.scale = to_f16(scale), .minimum = to_f16(minimum), .nibbles = {}};
  for (int i = 0; i < 16; ++i) {
    block.nibbles[i] =
        static_cast<std::uint8_t>(nibble((x[i] - minimum) * inverse + 0.5f) |
                                  nibble((x[i + 16] - minimum) * inverse + 0.5f) << 4);
  }
  return block;
}

inline int five_bits(float x) {
  return std::clamp(static_cast<int>(x), 0, 31);
}

inline BlockQ5_1 quantize_block_q5_1(std::span<const float> x) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const float minimum = *low;
  const float scale = (*high - minimum) / 31;
  const float inverse = reciprocal_or_zero(scale);
  BlockQ5_1 block{
      .scale = to_f16(scale), .minimum = to_f16(minimum), .high_bits = {}, .nibbles = {}};
  for (int i = 0; i < 32; ++i) {
    const int q = five_bits((x[i] - minimum) * inverse + 0.5f);
    put_bits(block.nibbles[i % 16], q & 15, i / 16 * 4);
    put_bits(block.high_bits[i / 8], q >> 4, i % 8);
  }
  return block;
}

inline BlockIQ4_NL quantize_block_iq4_nl(std::span<const float> x) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  const float scale = to_float(to_f16(largest / 113));
  BlockIQ4_NL block{.scale = to_f16(scale), .nibbles = {}};
  for (int i = 0; i < 32; ++i) {
    put_bits(block.nibbles[i % 16], nearest_level(kIq4Levels, divided(x[i], scale)), i / 16 * 4);
  }
  return block;
}

inline BlockMXFP4 quantize_block_mxfp4(std::span<const float> x) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  // The largest value is between 4 and 8 times the format's power, which is twice the scale.
  const int exponent = largest > 0 ? std::clamp(std::ilogb(largest) - 2 + 127, 0, 254) : 0;
  BlockMXFP4 block{.exponent = static_cast<std::uint8_t>(exponent), .nibbles = {}};
  const float scale = mxfp4_scale(block.exponent);
  for (int i = 0; i < 32; ++i) {
    put_bits(block.nibbles[i % 16], nearest_level(kMxfp4Levels, x[i] / scale), i / 16 * 4);
  }
  return block;
}

// Encodes the blocks one after the other; encode() takes one block's values.
template <typename Encode>
std::vector<std::byte> encoded(std::span<const float> values, int block_size, Encode encode) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < values.size(); i += block_size) {
    const auto block = encode(values.subspan(i, block_size));
    const auto stored = std::as_bytes(std::span(&block, 1));
    bytes.insert(bytes.end(), stored.begin(), stored.end());
  }
  return bytes;
}

// Quantizes values. REQUIRES: values.size() is a multiple of the format's block size.
inline std::vector<std::byte> quantize(WeightFormat format, std::span<const float> values) {
  const WeightFormatTraits& traits = traits_of(format);
  const int size = traits.block_size;
  PAGODA_CHECK(values.size() % size == 0, "values must fill whole blocks");
  if (traits.quantize != nullptr) {
    std::vector<std::byte> bytes(packed_bytes(format, static_cast<std::int64_t>(values.size())));
    traits.quantize(values, bytes.data());
    return bytes;
  }
  switch (format) {
    case WeightFormat::kQ4_1:
      return encoded(values, size, quantize_block_q4_1);
    case WeightFormat::kQ5_1:
      return encoded(values, size, quantize_block_q5_1);
    case WeightFormat::kQ2_K:
      return encoded(values, size, quantize_block_q2_k);
    case WeightFormat::kQ3_K:
      return encoded(values, size, quantize_block_q3_k);
    case WeightFormat::kQ5_K:
      return encoded(values, size, quantize_block_q5_k);
    case WeightFormat::kQ6_K:
      return encoded(values, size, quantize_block_q6_k);
    case WeightFormat::kIQ4_NL:
      return encoded(values, size, quantize_block_iq4_nl);
    case WeightFormat::kIQ4_XS:
      return encoded(values, size, quantize_block_iq4_xs);
    case WeightFormat::kMXFP4:
      return encoded(values, size, quantize_block_mxfp4);
    default:
      PAGODA_CHECK(false, "no quantiser for this format");
      return {};
  }
}

// Returns the values that a reader of these bytes sees.
inline std::vector<float> dequantize(WeightFormat format, std::span<const std::byte> bytes) {
  const WeightFormatTraits& traits = traits_of(format);
  std::vector<float> values(bytes.size() / traits.block_bytes * traits.block_size);
  traits.dequantize(bytes, values.data());
  return values;
}

}  // namespace pagoda::testing
