#include "quant/kv_int4.h"

#include <algorithm>

#include "quant/kv_int8.h"
#include "quant/kv_scale.h"

namespace pagoda {
namespace {

// Returns the bfloat16 nearest to `least`; a zero gets no sign.
bf16 minimum_of(float least) {
  return least == 0 ? bf16{0} : to_bf16(least);
}

}  // namespace

KvInt4Scales encode_kv_int4(std::span<const float> rotated, std::uint8_t* codes) {
  const std::size_t half = rotated.size() / 2;
  std::fill_n(codes, half, std::uint8_t{0});
  const auto is_finite = [](float x) { return std::isfinite(x); };
  if (!std::all_of(rotated.begin(), rotated.end(), is_finite)) return {kKvNaN, kKvNaN};
  const auto [least, most] = std::minmax_element(rotated.begin(), rotated.end());
  const bf16 minimum = minimum_of(*least);
  const float bottom = to_float(minimum), span = *most - bottom;
  if (!is_finite(bottom) || !is_finite(span)) return {kKvNaN, kKvNaN};
  if (span <= 0) return {{0}, minimum};
  const bf16 scale = to_bf16(span * (1.0f / 15));
  const float reciprocal = kv_reciprocal(scale);
  const auto code_of = [&](float x) {
    const float code = std::nearbyint((x - bottom) * reciprocal);
    return static_cast<std::uint8_t>(std::clamp(code, 0.0f, 15.0f));
  };
  for (std::size_t i = 0; i < half; ++i) {
    codes[i] = static_cast<std::uint8_t>(code_of(rotated[i]) | code_of(rotated[i + half]) << 4);
  }
  return {scale, minimum};
}

void decode_kv_int4(const std::uint8_t* codes, KvInt4Scales scales, std::span<float> rotated) {
  const std::size_t half = rotated.size() / 2;
  const float scale = to_float(scales.scale), minimum = to_float(scales.minimum);
  for (std::size_t i = 0; i < half; ++i) {
    rotated[i] = scale * static_cast<float>(codes[i] & 15) + minimum;
    rotated[i + half] = scale * static_cast<float>(codes[i] >> 4) + minimum;
  }
}

}  // namespace pagoda
