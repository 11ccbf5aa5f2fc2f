// F32, F16 and BF16: consecutive values, little-endian. Decoding is exact: every stored value is a
// float32.
#pragma once

#include <cstddef>
#include <span>

namespace pagoda {

// Widens values. `bytes` may be unaligned: safetensors does not promise alignment.
void dequantize_f32(std::span<const std::byte> bytes, float* values);
void dequantize_f16(std::span<const std::byte> bytes, float* values);
void dequantize_bf16(std::span<const std::byte> bytes, float* values);

// Rounds to nearest, ties to even.
void quantize_f32(std::span<const float> values, std::byte* bytes);
void quantize_f16(std::span<const float> values, std::byte* bytes);
void quantize_bf16(std::span<const float> values, std::byte* bytes);

}  // namespace pagoda
