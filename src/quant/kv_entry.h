// An entry of a quantised KV cache: a key or a value of one token and head, as codes and scales.
#pragma once

#include <cstddef>
#include <span>

#include "core/half.h"
#include "core/kv_format.h"

namespace pagoda {

// Rotates an entry [head_dim] in place and encodes it. Numbers below kLeastKvMagnitude count as 0.
// Writes head_dim * bits / 8 bytes of codes, and num_scales scales. REQUIRES: is_quantized(format),
// and fits(format, head_dim).
void encode_kv_entry(KvFormat format, std::span<float> entry, std::byte* codes, bf16* scales);

// Decodes to the rotated entry.
void decode_kv_entry(KvFormat format, const std::byte* codes, const bf16* scales,
                     std::span<float> rotated);

}  // namespace pagoda
