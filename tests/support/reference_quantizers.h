// Reference quantisers for tests: float32 values into a checkpoint format's bytes. Q8_0, Q4_0,
// Q4_1, Q5_0 and Q5_1 as ggml's reference quantisers round them.
#pragma once

#include <algorithm>
#include <cmath>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/half.h"
#include "quant/iq4_nl.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q5_0.h"
#include "quant/q5_1.h"
#include "quant/q8_0.h"
#include "quant/weight_format.h"
#include "tests/support/super_block_quantizers.h"

namespace pagoda::testing {

inline float reciprocal_or_zero(float x) {
  return x == 0 ? 0.0f : 1.0f / x;
}

inline std::uint8_t nibble(float x) {
  return static_cast<std::uint8_t>(std::clamp(static_cast<int>(x), 0, 15));
}

inline BlockQ8_0 quantize_block_q8_0(std::span<const float> x) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  const float scale = largest / 127;
  const float inverse = reciprocal_or_zero(scale);
  BlockQ8_0 block{.scale = to_f16(scale), .q = {}};
  for (int i = 0; i < 32; ++i) block.q[i] = static_cast<std::int8_t>(std::round(x[i] * inverse));
  return block;
}

inline BlockQ4_0 quantize_block_q4_0(std::span<const float> x) {
  float extreme = 0;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  const float scale = extreme / -8;
  const float inverse = reciprocal_or_zero(scale);
  BlockQ4_0 block{.scale = to_f16(scale), .nibbles = {}};
  for (int i = 0; i < 16; ++i) {
    block.nibbles[i] = static_cast<std::uint8_t>(nibble(x[i] * inverse + 8.5f) |
                                                 nibble(x[i + 16] * inverse + 8.5f) << 4);
  }
  return block;
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

// Q5_0 and Q5_1 keep their q alike.
template <typename Block>
void put_five_bits(Block& block, int i, int q) {
  put_bits(block.nibbles[i % 16], q & 15, i / 16 * 4);
  put_bits(block.high_bits[i / 8], q >> 4, i % 8);
}

inline BlockQ5_0 quantize_block_q5_0(std::span<const float> x) {
  float extreme = 0;
  for (const float value : x) {
    if (std::fabs(value) > std::fabs(extreme)) extreme = value;
  }
  const float scale = extreme / -16;
  const float inverse = reciprocal_or_zero(scale);
  BlockQ5_0 block{.scale = to_f16(scale), .high_bits = {}, .nibbles = {}};
  for (int i = 0; i < 32; ++i) put_five_bits(block, i, five_bits(x[i] * inverse + 16.5f));
  return block;
}

inline BlockQ5_1 quantize_block_q5_1(std::span<const float> x) {
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  const float minimum = *low;
  const float scale = (*high - minimum) / 31;
  const float inverse = reciprocal_or_zero(scale);
  BlockQ5_1 block{
      .scale = to_f16(scale), .minimum = to_f16(minimum), .high_bits = {}, .nibbles = {}};
  for (int i = 0; i < 32; ++i) {
    put_five_bits(block, i, five_bits((x[i] - minimum) * inverse + 0.5f));
  }
  return block;
}

inline BlockIQ4_NL quantize_block_iq4_nl(std::span<const float> x) {
  float largest = 0;
  for (const float value : x) largest = std::max(largest, std::fabs(value));
  const float scale = to_float(to_f16(largest / 113));
  BlockIQ4_NL block{.scale = to_f16(scale), .nibbles = {}};
  for (int i = 0; i < 32; ++i) {
    put_bits(block.nibbles[i % 16], nearest_level(divided(x[i], scale)), i / 16 * 4);
  }
  return block;
}

// The blocks one after the other; encode() takes one block's values.
template <typename Encode>
std::vector<std::byte> encode_blocks(std::span<const float> values, int block_size, Encode encode) {
  std::vector<std::byte> bytes;
  for (std::size_t i = 0; i < values.size(); i += block_size) {
    const auto block = encode(values.subspan(i, block_size));
    const auto encoded = std::as_bytes(std::span(&block, 1));
    bytes.insert(bytes.end(), encoded.begin(), encoded.end());
  }
  return bytes;
}

// values.size() is a multiple of the format's block size.
inline std::vector<std::byte> quantize(WeightFormat format, std::span<const float> values) {
  const int size = traits_of(format).block_size;
  PAGODA_CHECK(values.size() % size == 0, "values must fill whole blocks");
  using Block = std::span<const float>;
  switch (format) {
    case WeightFormat::kF32:
      return encode_blocks(values, size, [](Block x) { return x[0]; });
    case WeightFormat::kF16:
      return encode_blocks(values, size, [](Block x) { return to_f16(x[0]); });
    case WeightFormat::kBF16:
      return encode_blocks(values, size, [](Block x) { return to_bf16(x[0]); });
    case WeightFormat::kQ8_0:
      return encode_blocks(values, size, quantize_block_q8_0);
    case WeightFormat::kQ4_0:
      return encode_blocks(values, size, quantize_block_q4_0);
    case WeightFormat::kQ4_1:
      return encode_blocks(values, size, quantize_block_q4_1);
    case WeightFormat::kQ5_0:
      return encode_blocks(values, size, quantize_block_q5_0);
    case WeightFormat::kQ5_1:
      return encode_blocks(values, size, quantize_block_q5_1);
    case WeightFormat::kQ2_K:
      return encode_blocks(values, size, quantize_block_q2_k);
    case WeightFormat::kQ3_K:
      return encode_blocks(values, size, quantize_block_q3_k);
    case WeightFormat::kQ4_K:
      return encode_blocks(values, size, quantize_block_q4_k);
    case WeightFormat::kQ5_K:
      return encode_blocks(values, size, quantize_block_q5_k);
    case WeightFormat::kQ6_K:
      return encode_blocks(values, size, quantize_block_q6_k);
    case WeightFormat::kIQ4_NL:
      return encode_blocks(values, size, quantize_block_iq4_nl);
    case WeightFormat::kIQ4_XS:
      return encode_blocks(values, size, quantize_block_iq4_xs);
    case WeightFormat::kAffine:
      break;
  }
  PAGODA_CHECK(false, "affine groups are no blocks");
  return {};
}

// What a reader of those bytes sees.
inline std::vector<float> dequantize(WeightFormat format, std::span<const std::byte> bytes) {
  const WeightFormatTraits& traits = traits_of(format);
  std::vector<float> values(bytes.size() / traits.block_bytes * traits.block_size);
  traits.dequantize(bytes, values.data());
  return values;
}

}  // namespace pagoda::testing
