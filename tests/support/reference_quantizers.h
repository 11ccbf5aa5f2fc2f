// Reference quantisers for tests: float32 values into a checkpoint format's bytes, as ggml's
// reference quantisers round them.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <vector>

#include "core/check.h"
#include "core/half.h"
#include "quant/q4_0.h"
#include "quant/q4_1.h"
#include "quant/q8_0.h"
#include "quant/weight_format.h"

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

// values.size() is a multiple of the format's block size.
inline std::vector<std::byte> quantize(WeightFormat format, std::span<const float> values) {
  const WeightFormatTraits& traits = traits_of(format);
  PAGODA_CHECK(values.size() % traits.block_size == 0, "values must fill whole blocks");
  std::vector<std::byte> bytes(values.size() / traits.block_size * traits.block_bytes);
  std::byte* out = bytes.data();
  const auto put = [&out](const auto& block) {
    std::memcpy(out, &block, sizeof(block));
    out += sizeof(block);
  };
  for (std::size_t i = 0; i < values.size(); i += traits.block_size) {
    const std::span<const float> x = values.subspan(i, traits.block_size);
    switch (format) {
      case WeightFormat::kF32:
        put(x[0]);
        break;
      case WeightFormat::kF16:
        put(to_f16(x[0]));
        break;
      case WeightFormat::kBF16:
        put(to_bf16(x[0]));
        break;
      case WeightFormat::kQ8_0:
        put(quantize_block_q8_0(x));
        break;
      case WeightFormat::kQ4_0:
        put(quantize_block_q4_0(x));
        break;
      case WeightFormat::kQ4_1:
        put(quantize_block_q4_1(x));
        break;
    }
  }
  return bytes;
}

// What a reader of those bytes sees.
inline std::vector<float> dequantize(WeightFormat format, std::span<const std::byte> bytes) {
  const WeightFormatTraits& traits = traits_of(format);
  std::vector<float> values(bytes.size() / traits.block_bytes * traits.block_size);
  traits.dequantize(bytes, values.data());
  return values;
}

}  // namespace pagoda::testing
