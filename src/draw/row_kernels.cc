#include "draw/row_kernels.h"

#include <algorithm>
#include <array>
#include <limits>
#include <span>

#include "draw/drawn_token.h"
#include "draw/token_weight.h"

// Highway compiles what follows once for each instruction set and picks one when it runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "draw/row_kernels.cc"
#include <hwy/foreach_target.h>
// Must follow foreach_target.h, and precede HWY_BEFORE_NAMESPACE.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pagoda::cpu::HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums run in 16 lanes whatever the vector width: lane i adds the elements i, i + 16, ...
constexpr std::size_t kNumLanes = 16;
using FloatTag = hn::CappedTag<float, kNumLanes>;
using DoubleTag = hn::CappedTag<double, kNumLanes>;
using Floats = hn::Vec<FloatTag>;

// Returns exp(x) for x <= 0, by ExpConstants; 0 below kLeast.
HWY_INLINE Floats exp_nonpositive(FloatTag d, Floats x) {
  using C = ExpConstants;
  const hn::RebindToSigned<FloatTag> di;
  const auto in_range = hn::Ge(x, hn::Set(d, C::kLeast));
  x = hn::Max(x, hn::Set(d, C::kLeast));
  const auto magic = hn::Set(d, C::kMagic);
  const auto shifted = hn::Add(hn::Mul(x, hn::Set(d, C::kInverseLn2)), magic);
  const auto n = hn::Sub(shifted, magic);
  auto r = hn::Sub(x, hn::Mul(n, hn::Set(d, C::kLn2High)));
  r = hn::Sub(r, hn::Mul(n, hn::Set(d, C::kLn2Low)));
  auto p = hn::Set(d, C::kLeading);
  for (const float c : C::kOthers) p = hn::Add(hn::Mul(p, r), hn::Set(d, c));
  // Adds n, which is in [-126, 0], to the exponent.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const auto scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElseZero(in_range, scaled);
}

// Returns exp(x - max), corrected by the difference's rounding error (Knuth's TwoSum): e^(d +
// error) = e^d (1 + error).
HWY_INLINE Floats exp_of_difference(FloatTag d, Floats x, Floats max) {
  const auto difference = hn::Sub(x, max);
  const auto back = hn::Sub(difference, x);
  const auto error = hn::Sub(hn::Sub(x, hn::Sub(difference, back)), hn::Add(max, back));
  const auto result = exp_nonpositive(d, difference);
  const auto corrected = hn::Add(result, hn::Mul(result, error));
  // For x = -inf the correction is NaN, and the result is 0.
  return hn::IfThenElseZero(hn::Gt(result, hn::Zero(d)), corrected);
}

// Returns the sum of a block's values: first within each lane, then over the lanes by halves.
HWY_INLINE double sum_block(const float* HWY_RESTRICT values) {
  const DoubleTag d;
  const hn::Rebind<float, DoubleTag> dh;
  HWY_ALIGN double lanes[kNumLanes];
  for (std::size_t lane = 0; lane < kNumLanes; lane += hn::Lanes(d)) {
    auto sum = hn::Zero(d);
    for (std::size_t i = 0; i < kRowBlock; i += kNumLanes) {
      sum = hn::Add(sum, hn::PromoteTo(d, hn::LoadU(dh, values + i + lane)));
    }
    hn::StoreU(sum, d, lanes + lane);
  }
  for (std::size_t half = kNumLanes / 2; half > 0; half /= 2) {
    for (std::size_t lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

// Returns the sum of a block's weights as a whole number: 2^7 weights of 42 bits add up in a double
// without rounding.
HWY_INLINE std::int64_t sum_whole(const float* HWY_RESTRICT weights) {
  return static_cast<std::int64_t>(sum_block(weights) *
                                   double{ExpConstants::kWeightOfTheLikeliest});
}

// Calls visit(block, first, size) for each block of kRowBlock logits. A last block that is not full
// is a copy, padded with -inf.
template <typename Visit>
HWY_INLINE void for_each_block(const float* logits, std::size_t n, const Visit& visit) {
  std::size_t first = 0;
  for (; first + kRowBlock <= n; first += kRowBlock) visit(logits + first, first, kRowBlock);
  if (first == n) return;
  HWY_ALIGN float padded[kRowBlock];
  std::copy(logits + first, logits + n, padded);
  std::fill(padded + (n - first), padded + kRowBlock, -std::numeric_limits<float>::infinity());
  visit(padded, first, n - first);
}

bool scan(const float* HWY_RESTRICT logits, std::size_t n, float* HWY_RESTRICT block_max) {
  const FloatTag d;
  const auto infinity = hn::Set(d, std::numeric_limits<float>::infinity());
  auto valid = hn::Eq(infinity, infinity);
  for_each_block(logits, n, [&](const float* block, std::size_t first, std::size_t) {
    auto max = hn::LoadU(d, block);
    for (std::size_t i = 0; i < kRowBlock; i += hn::Lanes(d)) {
      const auto x = hn::LoadU(d, block + i);
      valid = hn::And(valid, hn::Lt(x, infinity));  // false for NaN
      max = hn::Max(max, x);
    }
    block_max[first / kRowBlock] = hn::GetLane(hn::MaxOfLanes(d, max));
  });
  return hn::AllTrue(d, valid);
}

double sum_exponentials(const float* HWY_RESTRICT logits, std::size_t n, float max) {
  const FloatTag d;
  const auto max_lanes = hn::Set(d, max);
  double total = 0;
  for_each_block(logits, n, [&](const float* block, std::size_t, std::size_t) {
    HWY_ALIGN float weights[kRowBlock];
    for (std::size_t i = 0; i < kRowBlock; i += hn::Lanes(d)) {
      hn::Store(exp_of_difference(d, hn::LoadU(d, block + i), max_lanes), d, weights + i);
    }
    total += sum_block(weights);
  });
  return total;
}

std::int64_t weigh(const float* logits, std::size_t n, float max, float inverse_temperature,
                   float* weights, std::int64_t* block_sums) {
  const FloatTag d;
  const auto max_lanes = hn::Set(d, max);
  const auto factor = hn::Set(d, inverse_temperature);
  const auto unit = hn::Set(d, ExpConstants::kWeightOfTheLikeliest);
  const auto inverse_unit = hn::Set(d, 1 / ExpConstants::kWeightOfTheLikeliest);
  std::int64_t total = 0;
  for_each_block(logits, n, [&](const float* block, std::size_t first, std::size_t size) {
    HWY_ALIGN float block_weights[kRowBlock];
    for (std::size_t i = 0; i < kRowBlock; i += hn::Lanes(d)) {
      const auto x = hn::Mul(hn::Sub(hn::LoadU(d, block + i), max_lanes), factor);
      const auto whole = hn::Round(hn::Mul(exp_nonpositive(d, x), unit));
      hn::Store(hn::Mul(whole, inverse_unit), d, block_weights + i);
    }
    const std::int64_t sum = sum_whole(block_weights);
    block_sums[first / kRowBlock] = sum;
    total += sum;
    std::copy(block_weights, block_weights + size, weights + first);
  });
  return total;
}

// The output of a collection. Values are compressed in registers: compressing to memory takes a Zen
// 4 over a hundred cycles.
struct Collected {
  std::int32_t* HWY_RESTRICT ids;
  float* HWY_RESTRICT values;
  std::size_t size = 0;

  template <typename Mask>
  HWY_INLINE void add(Floats x, Mask mask, std::size_t first_id) {
    const FloatTag d;
    const hn::RebindToSigned<FloatTag> di;
    const auto x_ids = hn::Iota(di, static_cast<std::int32_t>(first_id));
    const std::size_t count = hn::CountTrue(d, mask);
    hn::BlendedStore(hn::Compress(x, mask), hn::FirstN(d, count), d, values + size);
    hn::BlendedStore(hn::Compress(x_ids, hn::RebindMask(di, mask)), hn::FirstN(di, count), di,
                     ids + size);
    size += count;
  }
};

std::size_t collect(std::span<const float> logits, const float* HWY_RESTRICT block_max, float least,
                    std::int32_t* ids, float* values) {
  const FloatTag d;
  const auto least_lanes = hn::Set(d, least);
  Collected collected{.ids = ids, .values = values};
  const auto take = [&](const float* block, std::size_t first, std::size_t) {
    if (block_max[first / kRowBlock] < least) return;
    for (std::size_t i = 0; i < kRowBlock; i += hn::Lanes(d)) {
      const auto x = hn::LoadU(d, block + i);
      const auto mask = hn::Ge(x, least_lanes);
      if (!hn::AllFalse(d, mask)) collected.add(x, mask, first + i);
    }
  };
  for_each_block(logits.data(), logits.size(), take);
  return collected.size;
}

std::size_t collect_bracket(std::span<const float> logits, const float* HWY_RESTRICT weights,
                            float least, float most, std::int32_t* ids, float* values,
                            std::int64_t* above) {
  const FloatTag d;
  const auto least_lanes = hn::Set(d, least);
  const auto most_lanes = hn::Set(d, most);
  Collected collected{.ids = ids, .values = values};
  const auto take = [&](const float* block, std::size_t first, std::size_t size) {
    HWY_ALIGN float block_weights[kRowBlock] = {};
    std::copy(weights + first, weights + first + size, block_weights);
    for (std::size_t i = 0; i < kRowBlock; i += hn::Lanes(d)) {
      const auto x = hn::LoadU(d, block + i);
      const auto is_above = hn::Gt(x, most_lanes);
      const auto mask = hn::AndNot(is_above, hn::Ge(x, least_lanes));
      if (!hn::AllFalse(d, mask)) collected.add(x, mask, first + i);
      hn::Store(hn::IfThenElseZero(is_above, hn::Load(d, block_weights + i)), d, block_weights + i);
    }
    *above += sum_whole(block_weights);
  };
  for_each_block(logits.data(), logits.size(), take);
  return collected.size;
}

std::int64_t drop(std::span<const float> logits, float least, float* HWY_RESTRICT weights,
                  std::int64_t* HWY_RESTRICT block_sums) {
  const FloatTag d;
  const auto least_lanes = hn::Set(d, least);
  std::int64_t total = 0;
  const auto take = [&](const float* block, std::size_t first, std::size_t size) {
    HWY_ALIGN float block_weights[kRowBlock] = {};
    std::copy(weights + first, weights + first + size, block_weights);
    for (std::size_t i = 0; i < kRowBlock; i += hn::Lanes(d)) {
      const auto is_kept = hn::Ge(hn::LoadU(d, block + i), least_lanes);
      hn::Store(hn::IfThenElseZero(is_kept, hn::Load(d, block_weights + i)), d, block_weights + i);
    }
    std::copy(block_weights, block_weights + size, weights + first);
    block_sums[first / kRowBlock] = sum_whole(block_weights);
    total += block_sums[first / kRowBlock];
  };
  for_each_block(logits.data(), logits.size(), take);
  return total;
}

}  // namespace pagoda::cpu::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda::cpu {

HWY_EXPORT(scan);
HWY_EXPORT(sum_exponentials);
HWY_EXPORT(weigh);
HWY_EXPORT(collect);
HWY_EXPORT(collect_bracket);
HWY_EXPORT(drop);

RowScan scan_row(std::span<const float> logits, std::span<float> block_max) {
  RowScan scan;
  scan.valid = HWY_DYNAMIC_DISPATCH(scan)(logits.data(), logits.size(), block_max.data());
  scan.max =
      *std::max_element(block_max.begin(), block_max.begin() + num_row_blocks(logits.size()));
  return scan;
}

std::int32_t fault_of(const RowScan& scan) {
  if (!scan.valid) return kRowIsNotNumbers;
  return scan.max == -std::numeric_limits<float>::infinity() ? kRowHasNoToken : 0;
}

std::int32_t first_of_largest(std::span<const float> logits, std::span<const float> block_max,
                              float max) {
  const auto block = std::find(block_max.begin(), block_max.end(), max) - block_max.begin();
  const auto first = logits.begin() + block * static_cast<std::ptrdiff_t>(kRowBlock);
  return static_cast<std::int32_t>(std::find(first, logits.end(), max) - logits.begin());
}

double sum_exp(std::span<const float> logits, float max) {
  return HWY_DYNAMIC_DISPATCH(sum_exponentials)(logits.data(), logits.size(), max);
}

std::int64_t weigh_row(std::span<const float> logits, float max, float inverse_temperature,
                       std::span<float> weights, std::span<std::int64_t> block_sums) {
  return HWY_DYNAMIC_DISPATCH(weigh)(logits.data(), logits.size(), max, inverse_temperature,
                                     weights.data(), block_sums.data());
}

std::size_t collect_row(std::span<const float> logits, std::span<const float> block_max,
                        float least, std::span<std::int32_t> ids, std::span<float> values) {
  return HWY_DYNAMIC_DISPATCH(collect)(logits, block_max.data(), least, ids.data(), values.data());
}

std::size_t collect_between(std::span<const float> logits, std::span<const float> weights,
                            float least, float most, std::span<std::int32_t> ids,
                            std::span<float> values, std::int64_t& above) {
  above = 0;
  return HWY_DYNAMIC_DISPATCH(collect_bracket)(logits, weights.data(), least, most, ids.data(),
                                               values.data(), &above);
}

std::int64_t drop_below(std::span<const float> logits, float least, std::span<float> weights,
                        std::span<std::int64_t> block_sums) {
  return HWY_DYNAMIC_DISPATCH(drop)(logits, least, weights.data(), block_sums.data());
}

}  // namespace pagoda::cpu
#endif  // HWY_ONCE
