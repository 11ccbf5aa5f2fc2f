// Quantisers into the formats with blocks of 256 values, for tests. They do not search for the best
// fit, but a model written in them still answers like the original.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <span>

#include "core/half.h"
#include "quant/iq4_nl.h"
#include "quant/iq4_xs.h"
#include "quant/q2_k.h"
#include "quant/q3_k.h"
#include "quant/q4_k.h"
#include "quant/q5_k.h"
#include "quant/q6_k.h"
#include "quant/super_block.h"

namespace pagoda::testing {

// The ranges of a format's integers.
struct SuperBlockLimits {
  int group_size;
  int q_lowest;
  int q_highest;
  int largest_scale;
  int largest_minimum = 0;  // 0: the format has none
};

inline float divided(float x, float by) {
  return by == 0 ? 0.0f : x / by;
}

inline int rounded_within(float x, int lowest, int highest) {
  return std::clamp(static_cast<int>(std::lround(x)), lowest, highest);
}

// Returns the index of the level closest to x.
inline std::uint8_t nearest_level(const std::int8_t (&levels)[16], float x) {
  int best = 0;
  for (int i = 1; i < 16; ++i) {
    const float distance = std::fabs(x - static_cast<float>(levels[i]));
    if (distance < std::fabs(x - static_cast<float>(levels[best]))) best = i;
  }
  return static_cast<std::uint8_t>(best);
}

// Computes scales and minima as the format can hold them, and then every value's nearest q.
inline SuperBlock to_super_block(std::span<const float> x, const SuperBlockLimits& limits) {
  const int num_groups = SuperBlock::kValues / limits.group_size;
  float scales[SuperBlock::kMaxGroups];
  float minima[SuperBlock::kMaxGroups];
  float largest_scale = 0, largest_minimum = 0;
  for (int g = 0; g < num_groups; ++g) {
    const auto group = x.subspan(g * limits.group_size, limits.group_size);
    const auto [low, high] = std::minmax_element(group.begin(), group.end());
    const float magnitude = std::max(std::fabs(*low), std::fabs(*high));
    minima[g] = limits.largest_minimum == 0 ? 0.0f : std::max(0.0f, -*low);
    scales[g] = limits.largest_minimum == 0
                    ? magnitude / static_cast<float>(limits.q_highest)
                    : (std::max(0.0f, *high) + minima[g]) / static_cast<float>(limits.q_highest);
    largest_scale = std::max(largest_scale, scales[g]);
    largest_minimum = std::max(largest_minimum, minima[g]);
  }
  SuperBlock block;
  block.scale = to_float(to_f16(largest_scale / static_cast<float>(limits.largest_scale)));
  block.minimum_scale =
      to_float(to_f16(divided(largest_minimum, static_cast<float>(limits.largest_minimum))));
  for (int g = 0; g < num_groups; ++g) {
    block.scales[g] = static_cast<std::int8_t>(
        rounded_within(divided(scales[g], block.scale), 0, limits.largest_scale));
    block.minima[g] = static_cast<std::uint8_t>(
        rounded_within(divided(minima[g], block.minimum_scale), 0, limits.largest_minimum));
    const float scale = block.scale * static_cast<float>(block.scales[g]);
    const float minimum = block.minimum_scale * static_cast<float>(block.minima[g]);
    for (int i = g * limits.group_size; i < (g + 1) * limits.group_size; ++i) {
      block.q[i] = static_cast<std::int8_t>(
          rounded_within(divided(x[i] + minimum, scale), limits.q_lowest, limits.q_highest));
    }
  }
  return block;
}

// Ors `bits` into a byte, from bit `shift` on.
inline void put_bits(std::uint8_t& byte, int bits, int shift) {
  byte = static_cast<std::uint8_t>(byte | bits << shift);
}

inline BlockQ2_K quantize_block_q2_k(std::span<const float> x) {
  const SuperBlock block = to_super_block(x, {16, 0, 3, 15, 15});
  BlockQ2_K packed{.scales = {},
                   .pairs = {},
                   .scale = to_f16(block.scale),
                   .minimum_scale = to_f16(block.minimum_scale)};
  for (int g = 0; g < 16; ++g) {
    packed.scales[g] = static_cast<std::uint8_t>(block.scales[g] | block.minima[g] << 4);
  }
  for (int i = 0; i < 256; ++i) {
    put_bits(packed.pairs[i / 128 * 32 + i % 32], block.q[i], i / 32 % 4 * 2);
  }
  return packed;
}

inline BlockQ3_K quantize_block_q3_k(std::span<const float> x) {
  const SuperBlock block = to_super_block(x, {16, -4, 3, 31});
  BlockQ3_K packed{.high_bits = {}, .pairs = {}, .scales = {}, .scale = to_f16(block.scale)};
  for (int g = 0; g < 16; ++g) {
    const int scale = block.scales[g] + 32;
    put_bits(packed.scales[g % 8], scale & 15, g / 8 * 4);
    put_bits(packed.scales[8 + g % 4], scale >> 4, g / 4 * 2);
  }
  for (int i = 0; i < 256; ++i) {
    const int q = block.q[i] + 4;
    put_bits(packed.pairs[i / 128 * 32 + i % 32], q & 3, i / 32 % 4 * 2);
    put_bits(packed.high_bits[i % 32], q >> 2, i / 32);
  }
  return packed;
}

// Quantizes a block by the plain fit alone, with which src/quant's search is compared.
inline BlockQ4_K quantize_block_q4_k(std::span<const float> x) {
  const SuperBlock block = to_super_block(x, {32, 0, 15, 63, 63});
  BlockQ4_K packed{.scale = to_f16(block.scale),
                   .minimum_scale = to_f16(block.minimum_scale),
                   .scales = {},
                   .nibbles = {}};
  pack_six_bit_scales(block, packed.scales);
  for (int i = 0; i < 256; ++i) {
    put_bits(packed.nibbles[i / 64 * 32 + i % 32], block.q[i], i / 32 % 2 * 4);
  }
  return packed;
}

inline BlockQ5_K quantize_block_q5_k(std::span<const float> x) {
  const SuperBlock block = to_super_block(x, {32, 0, 31, 63, 63});
  BlockQ5_K packed{.scale = to_f16(block.scale),
                   .minimum_scale = to_f16(block.minimum_scale),
                   .scales = {},
                   .high_bits = {},
                   .nibbles = {}};
  pack_six_bit_scales(block, packed.scales);
  for (int i = 0; i < 256; ++i) {
    put_bits(packed.nibbles[i / 64 * 32 + i % 32], block.q[i] & 15, i / 32 % 2 * 4);
    put_bits(packed.high_bits[i % 32], block.q[i] >> 4, i / 32);
  }
  return packed;
}

inline BlockQ6_K quantize_block_q6_k(std::span<const float> x) {
  const SuperBlock block = to_super_block(x, {16, -32, 31, 127});
  BlockQ6_K packed{.nibbles = {}, .pairs = {}, .scales = {}, .scale = to_f16(block.scale)};
  std::copy_n(block.scales, 16, packed.scales);
  for (int i = 0; i < 256; ++i) {
    const int q = block.q[i] + 32;
    put_bits(packed.nibbles[i / 128 * 64 + i % 64], q & 15, i / 64 % 2 * 4);
    put_bits(packed.pairs[i / 128 * 32 + i % 32], q >> 4, i / 32 % 4 * 2);
  }
  return packed;
}

inline BlockIQ4_XS quantize_block_iq4_xs(std::span<const float> x) {
  const SuperBlock block = to_super_block(x, {32, -127, 113, 31});
  BlockIQ4_XS packed{
      .scale = to_f16(block.scale), .scales_high = 0, .scales_low = {}, .nibbles = {}};
  for (int g = 0; g < 8; ++g) {
    const int scale = block.scales[g] + 32;
    put_bits(packed.scales_low[g / 2], scale & 15, g % 2 * 4);
    packed.scales_high = static_cast<std::uint16_t>(packed.scales_high | scale >> 4 << (2 * g));
  }
  for (int i = 0; i < 256; ++i) {
    const int group = i / 32;
    const float scale = block.scale * static_cast<float>(block.scales[group]);
    put_bits(packed.nibbles[group * 16 + i % 16], nearest_level(kIq4Levels, divided(x[i], scale)),
             i / 16 % 2 * 4);
  }
  return packed;
}

}  // namespace pagoda::testing
