#include "quant/kv_int8.h"

#include <algorithm>

#include "quant/kv_scale.h"

namespace pagoda {

bf16 encode_kv_int8(std::span<const float> rotated, std::int8_t* codes) {
  std::uint32_t largest_bits = 0;  // of the largest magnitude; a NaN's are above all others
  for (const float x : rotated)
    largest_bits = std::max(largest_bits, std::bit_cast<std::uint32_t>(x) & 0x7fffffffu);
  std::fill_n(codes, rotated.size(), std::int8_t{0});
  if (largest_bits >= 0x7f800000u) return kKvNaN;
  if (largest_bits == 0) return {0};
  const bf16 scale = kv_scale_above(std::bit_cast<float>(largest_bits) * (1.0f / 127));
  const float reciprocal = kv_reciprocal(scale);
  for (std::size_t i = 0; i < rotated.size(); ++i) {
    const float code = std::nearbyint(rotated[i] * reciprocal);
    codes[i] = static_cast<std::int8_t>(std::clamp(code, -127.0f, 127.0f));
  }
  return scale;
}

void decode_kv_int8(const std::int8_t* codes, bf16 scale, std::span<float> rotated) {
  for (std::size_t i = 0; i < rotated.size(); ++i)
    rotated[i] = to_float(scale) * static_cast<float>(codes[i]);
}

}  // namespace pagoda
