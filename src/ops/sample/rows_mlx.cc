#include "ops/sample/rows_mlx.h"

#include <mlx/ops.h>

#include <limits>

#include "draw/token_weight.h"
#include "ops/argmax/argmax.h"

namespace pagoda::mlx {

mx::array or_fault(const mx::array& ids, const mx::array& x) {
  constexpr float kInfinity = std::numeric_limits<float>::infinity();
  const mx::array is_number = mx::all(mx::less(x, mx::array(kInfinity)), 1);  // false for NaN
  const mx::array has_token = mx::any(mx::greater(x, mx::array(-kInfinity)), 1);
  const mx::array chosen = mx::where(has_token, ids, mx::array(kRowHasNoToken));
  return mx::where(is_number, chosen, mx::array(kRowIsNotNumbers));
}

mx::array weigh(const mx::array& x, const mx::array& max, const mx::array& inverse_temperature) {
  using C = ExpConstants;
  const mx::array scaled = mx::multiply(mx::subtract(x, max), inverse_temperature);
  const mx::array least = mx::array(C::kLeast);
  const mx::array in_range = mx::greater_equal(scaled, least);
  const mx::array power = mx::where(in_range, scaled, least);
  const mx::array magic = mx::array(C::kMagic);
  const mx::array shifted = mx::add(mx::multiply(power, mx::array(C::kInverseLn2)), magic);
  const mx::array n = mx::subtract(shifted, magic);
  mx::array r = mx::subtract(power, mx::multiply(n, mx::array(C::kLn2High)));
  r = mx::subtract(r, mx::multiply(n, mx::array(C::kLn2Low)));
  mx::array p = mx::array(C::kLeading);
  for (const float c : C::kOthers) p = mx::add(mx::multiply(p, r), mx::array(c));
  const mx::array exponent = mx::left_shift(mx::view(shifted, mx::uint32), mx::array(23u));
  const mx::array exp = mx::view(mx::add(mx::view(p, mx::uint32), exponent), mx::float32);
  const mx::array weight = mx::round(mx::multiply(exp, mx::array(C::kWeightOfTheLikeliest)));
  return mx::where(in_range, mx::astype(weight, mx::int64), mx::array(std::int64_t{0}));
}

mx::array share_of(const mx::array& total, const mx::array& high, const mx::array& low) {
  const mx::array bits = mx::array(std::int64_t{31});
  const mx::array total_high = mx::right_shift(total, bits);
  const mx::array total_low = mx::bitwise_and(total, mx::array((std::int64_t{1} << 31) - 1));
  mx::array middle = mx::right_shift(mx::multiply(total_low, low), bits);
  middle = mx::add(middle, mx::multiply(total_high, low));
  middle = mx::add(middle, mx::multiply(total_low, high));
  return mx::add(mx::multiply(total_high, high), mx::right_shift(middle, bits));
}

}  // namespace pagoda::mlx
