// The search that q4_k.h describes. It works on one group at a time: x[i] ~ scale * q[i] - minimum,
// scale and minimum not negative.
#include <algorithm>
#include <cmath>

#include "quant/block_loop.h"
#include "quant/q4_k.h"

namespace pagoda {
namespace {

constexpr int kGroupSize = BlockQ4_K::kGroupSize;
constexpr int kNumGroups = BlockQ4_K::kValues / kGroupSize;
constexpr int kLargestQ = 15;
constexpr int kLargestScale = 63;
// Roundings tried: (15 + 0.2 i) steps from smallest to largest, i = -5 .. 5; twice as many find
// 0.05 % less error.
constexpr int kRoundings = 5;
constexpr float kRoundingStep = 0.2f;

struct Fit {
  float scale = 0;
  float minimum = 0;
};

struct Group {
  float x[kGroupSize];
  float weights[kGroupSize];
  float weight = 0;        // sum of the weights
  float weighted_sum = 0;  // sum of weight * x
  float smallest = 0;      // at most zero: a minimum can't be negative
  float largest = 0;
};

Group group_of(std::span<const float> x) {
  Group group;
  float sum = 0;
  for (const float value : x) sum += value * value;
  const float root_mean_square = std::sqrt(sum / kGroupSize);
  for (int i = 0; i < kGroupSize; ++i) {
    group.x[i] = x[i];
    group.weights[i] = root_mean_square + std::fabs(x[i]);
    group.weight += group.weights[i];
    group.weighted_sum += group.weights[i] * x[i];
  }
  const auto [low, high] = std::minmax_element(x.begin(), x.end());
  group.smallest = std::min(*low, 0.0f);
  group.largest = *high;
  return group;
}

// Sums run in this many lanes, so that the compiler may keep them in a vector.
constexpr int kLanes = 8;

float total(const float* lanes) {
  float sum = 0;
  for (int lane = 0; lane < kLanes; ++lane) sum += lanes[lane];
  return sum;
}

// Finds the nearest q of each value; returns their weighted squared error.
float weighted_error(const Group& group, const Fit& fit, float* q) {
  const float inverse = reciprocal_or_zero(fit.scale);
  for (int i = 0; i < kGroupSize; ++i) {
    const float steps = (group.x[i] + fit.minimum) * inverse;
    q[i] = static_cast<float>(static_cast<int>(std::clamp(steps + 0.5f, 0.0f, 15.0f)));
  }
  float errors[kLanes] = {};
  for (int first = 0; first < kGroupSize; first += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int i = first + lane;
      const float difference = fit.scale * q[i] - fit.minimum - group.x[i];
      errors[lane] += group.weights[i] * difference * difference;
    }
  }
  return total(errors);
}

Fit plain_fit(const Group& group) {
  return {.scale = (group.largest - group.smallest) / kLargestQ, .minimum = -group.smallest};
}

// Returns the best scale and minimum for these q.
Fit least_squares(const Group& group, const float* q) {
  float qs[kLanes] = {}, qqs[kLanes] = {}, qxs[kLanes] = {};
  for (int first = 0; first < kGroupSize; first += kLanes) {
    for (int lane = 0; lane < kLanes; ++lane) {
      const int i = first + lane;
      const float weighted = group.weights[i] * q[i];
      qs[lane] += weighted;
      qqs[lane] += weighted * q[i];
      qxs[lane] += weighted * group.x[i];
    }
  }
  const float w = group.weight, wx = group.weighted_sum;
  const float wq = total(qs), wqq = total(qqs), wqx = total(qxs);
  const float determinant = w * wqq - wq * wq;
  if (!(determinant > 0)) return plain_fit(group);
  Fit fit{.scale = (w * wqx - wx * wq) / determinant,
          .minimum = (wq * wqx - wqq * wx) / determinant};
  if (fit.minimum < 0) fit = {.scale = wqx / wqq, .minimum = 0};
  return fit.scale > 0 && std::isfinite(fit.scale) && std::isfinite(fit.minimum) ? fit
                                                                                 : plain_fit(group);
}

Fit searched_fit(const Group& group) {
  const float range = group.largest - group.smallest;
  float q[kGroupSize];
  Fit best = plain_fit(group);
  float least = weighted_error(group, best, q);
  for (int i = -kRoundings; i <= kRoundings; ++i) {
    const float steps = kLargestQ + kRoundingStep * static_cast<float>(i);
    weighted_error(group, {.scale = range / steps, .minimum = -group.smallest}, q);
    const Fit fit = least_squares(group, q);
    const float error = weighted_error(group, fit, q);
    if (error < least) {
      least = error;
      best = fit;
    }
  }
  return best;
}

int six_bits(float x) {
  return static_cast<int>(std::clamp(x + 0.5f, 0.0f, static_cast<float>(kLargestScale)));
}

struct EncodedBlock {
  SuperBlock numbers;
  f16 scale, minimum_scale;
  float error = 0;
};

// Writes group g with the integer scale and minimum that leave the least error. Candidates are up
// to `reach` away from the fit's rounded scale and minimum.
void encode_group(const Group& group, const Fit& fit, int reach, int g, EncodedBlock& block) {
  SuperBlock& numbers = block.numbers;
  const int scale = six_bits(fit.scale * reciprocal_or_zero(numbers.scale));
  const int minimum = six_bits(fit.minimum * reciprocal_or_zero(numbers.minimum_scale));
  float least = INFINITY;
  for (int s = std::max(scale - reach, 0); s <= std::min(scale + reach, kLargestScale); ++s) {
    for (int m = std::max(minimum - reach, 0); m <= std::min(minimum + reach, kLargestScale); ++m) {
      const Fit stored{.scale = numbers.scale * static_cast<float>(s),
                       .minimum = numbers.minimum_scale * static_cast<float>(m)};
      float q[kGroupSize];
      const float error = weighted_error(group, stored, q);
      if (!(error < least)) continue;
      least = error;
      numbers.scales[g] = static_cast<std::int8_t>(s);
      numbers.minima[g] = static_cast<std::uint8_t>(m);
      std::copy_n(q, kGroupSize, numbers.q + g * kGroupSize);
    }
  }
  block.error += least;
}

EncodedBlock encode(const Group* groups, const Fit* fits, int reach) {
  Fit largest;
  for (int g = 0; g < kNumGroups; ++g) {
    largest.scale = std::max(largest.scale, fits[g].scale);
    largest.minimum = std::max(largest.minimum, fits[g].minimum);
  }
  EncodedBlock block;
  block.scale = to_f16(largest.scale / kLargestScale);
  block.minimum_scale = to_f16(largest.minimum / kLargestScale);
  block.numbers.scale = to_float(block.scale);
  block.numbers.minimum_scale = to_float(block.minimum_scale);
  for (int g = 0; g < kNumGroups; ++g) encode_group(groups[g], fits[g], reach, g, block);
  return block;
}

BlockQ4_K encode_block(std::span<const float, BlockQ4_K::kValues> x) {
  Group groups[kNumGroups];
  Fit plain[kNumGroups];
  Fit searched[kNumGroups];
  for (int g = 0; g < kNumGroups; ++g) {
    groups[g] = group_of(x.subspan(g * kGroupSize, kGroupSize));
    plain[g] = plain_fit(groups[g]);
    searched[g] = searched_fit(groups[g]);
  }
  EncodedBlock block = encode(groups, searched, 1);
  if (const EncodedBlock other = encode(groups, plain, 0); other.error < block.error) block = other;
  BlockQ4_K packed{
      .scale = block.scale, .minimum_scale = block.minimum_scale, .scales = {}, .nibbles = {}};
  pack_six_bit_scales(block.numbers, packed.scales);
  for (int i = 0; i < BlockQ4_K::kValues; ++i) {
    packed.nibbles[i / 64 * 32 + i % 32] |=
        static_cast<std::uint8_t>(block.numbers.q[i] << (i / 32 % 2 * 4));
  }
  return packed;
}

}  // namespace

void quantize_q4_k(std::span<const float> values, std::byte* blocks) {
  encode_blocks<BlockQ4_K>(values, blocks, encode_block);
}

}  // namespace pagoda
