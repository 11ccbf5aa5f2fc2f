#include "quant/kv_entry.h"

#include <cmath>

#include "quant/kv_int4.h"
#include "quant/kv_int8.h"
#include "quant/kv_rotation.h"
#include "quant/kv_scale.h"

namespace pagoda {

void encode_kv_entry(KvFormat format, std::span<float> entry, std::byte* codes, bf16* scales) {
  for (float& x : entry) {
    if (std::fabs(x) < kLeastKvMagnitude) x = 0;
  }
  rotate_kv_entry(entry);
  if (format == KvFormat::kInt8) {
    scales[0] = encode_kv_int8(entry, reinterpret_cast<std::int8_t*>(codes));
    return;
  }
  const KvInt4Scales found = encode_kv_int4(entry, reinterpret_cast<std::uint8_t*>(codes));
  scales[0] = found.scale;
  scales[1] = found.minimum;
}

void decode_kv_entry(KvFormat format, const std::byte* codes, const bf16* scales,
                     std::span<float> rotated) {
  if (format == KvFormat::kInt8)
    return decode_kv_int8(reinterpret_cast<const std::int8_t*>(codes), scales[0], rotated);
  decode_kv_int4(reinterpret_cast<const std::uint8_t*>(codes), {scales[0], scales[1]}, rotated);
}

}  // namespace pagoda
