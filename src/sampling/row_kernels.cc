#include "sampling/row_kernels.h"

#include <algorithm>
#include <array>
#include <limits>

// Highway compiles what follows once for each instruction set and picks one when it runs.
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "sampling/row_kernels.cc"
#include <hwy/foreach_target.h>
// After it, in this order.
#include <hwy/highway.h>

HWY_BEFORE_NAMESPACE();
namespace pagoda {
namespace HWY_NAMESPACE {
namespace hn = hwy::HWY_NAMESPACE;

// Sums run in 16 lanes whatever the machine has: lane i takes the elements i, i + 16, ...
constexpr std::size_t kNumLanes = 16;
using FloatTag = hn::CappedTag<float, kNumLanes>;
using DoubleTag = hn::CappedTag<double, kNumLanes>;
using Floats = hn::Vec<FloatTag>;

// Below this, exp is less than the smallest normal float32: nothing that 2^18 tokens could add up
// to.
constexpr float kLeastExponent = -87.0f;

// exp(x) for x <= 0; 0 below kLeastExponent. x = n ln 2 + r with |r| <= ln 2 / 2, and a minimax
// polynomial of e^r (relative error 2^-28, fitted for it by Lawson's iteration). Its error is that
// of float32 operations.
HWY_INLINE Floats exp_nonpositive(FloatTag d, Floats x) {
  const hn::RebindToSigned<FloatTag> di;
  const auto in_range = hn::Ge(x, hn::Set(d, kLeastExponent));
  x = hn::Max(x, hn::Set(d, kLeastExponent));
  // Adding 1.5 * 2^23 rounds to an integer and leaves it in the low mantissa.
  const auto magic = hn::Set(d, 0x1.8p23f);
  const auto shifted = hn::Add(hn::Mul(x, hn::Set(d, 0x1.715476p0f)), magic);
  const auto n = hn::Sub(shifted, magic);
  auto r = hn::Sub(x, hn::Mul(n, hn::Set(d, 0x1.62e4p-1f)));  // exact: ln 2's first 15 bits
  r = hn::Sub(r, hn::Mul(n, hn::Set(d, 0x1.7f7d1cp-20f)));
  auto p = hn::Set(d, 0x1.6a2434p-10f);
  for (const float c :
       {0x1.1239e2p-7f, 0x1.5558f2p-5f, 0x1.555492p-3f, 0x1.fffffcp-2f, 1.0f, 1.0f}) {
    p = hn::Add(hn::Mul(p, r), hn::Set(d, c));
  }
  // n in [-126, 0] goes into the exponent.
  const auto exponent = hn::ShiftLeft<23>(hn::BitCast(di, shifted));
  const auto scaled = hn::BitCast(d, hn::Add(hn::BitCast(di, p), exponent));
  return hn::IfThenElseZero(in_range, scaled);
}

// exp(x - max), the rounding error of the difference included (Knuth's TwoSum): e^(d + e) = e^d (1
// + e).
HWY_INLINE Floats exp_of_difference(FloatTag d, Floats x, Floats max) {
  const auto difference = hn::Sub(x, max);
  const auto back = hn::Sub(difference, x);
  const auto error = hn::Sub(hn::Sub(x, hn::Sub(difference, back)), hn::Add(max, back));
  const auto result = exp_nonpositive(d, difference);
  const auto corrected = hn::Add(result, hn::Mul(result, error));
  // A -inf has no error to speak of, but its arithmetic is NaN.
  return hn::IfThenElseZero(hn::Gt(result, hn::Zero(d)), corrected);
}

// The sum of a block's values, lane by lane, then lanes by halves.
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

// Calls visit(block, first, size) with kRowBlock logits at `block`: the last ones padded with -inf
// in a copy.
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

double weigh(const float* logits, std::size_t n, float max, float inverse_temperature,
             float* weights, double* block_sums) {
  const FloatTag d;
  const auto max_lanes = hn::Set(d, max);
  const auto factor = hn::Set(d, inverse_temperature);
  double total = 0;
  for_each_block(logits, n, [&](const float* block, std::size_t first, std::size_t size) {
    HWY_ALIGN float block_weights[kRowBlock];
    for (std::size_t i = 0; i < kRowBlock; i += hn::Lanes(d)) {
      const auto x = hn::Mul(hn::Sub(hn::LoadU(d, block + i), max_lanes), factor);
      hn::Store(exp_nonpositive(d, x), d, block_weights + i);
    }
    const double sum = sum_block(block_weights);
    block_sums[first / kRowBlock] = sum;
    total += sum;
    std::copy(block_weights, block_weights + size, weights + first);
  });
  return total;
}

}  // namespace HWY_NAMESPACE
}  // namespace pagoda
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace pagoda {

HWY_EXPORT(scan);
HWY_EXPORT(sum_exponentials);
HWY_EXPORT(weigh);

RowScan scan_row(std::span<const float> logits, std::span<float> block_max) {
  RowScan scan;
  scan.valid = HWY_DYNAMIC_DISPATCH(scan)(logits.data(), logits.size(), block_max.data());
  scan.max =
      *std::max_element(block_max.begin(), block_max.begin() + num_row_blocks(logits.size()));
  return scan;
}

double sum_exp(std::span<const float> logits, float max) {
  return HWY_DYNAMIC_DISPATCH(sum_exponentials)(logits.data(), logits.size(), max);
}

double weigh_row(std::span<const float> logits, float max, float inverse_temperature,
                 std::span<float> weights, std::span<double> block_sums) {
  return HWY_DYNAMIC_DISPATCH(weigh)(logits.data(), logits.size(), max, inverse_temperature,
                                     weights.data(), block_sums.data());
}

}  // namespace pagoda
#endif  // HWY_ONCE
