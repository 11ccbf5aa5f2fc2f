#include "quant/plain.h"

#include <cstring>

#include "core/half.h"

namespace pagoda {
namespace {

template <typename T>
void widen(std::span<const std::byte> bytes, float* values) {
  const std::size_t num_values = bytes.size() / sizeof(T);
  for (std::size_t i = 0; i < num_values; ++i) {
    T stored;
    std::memcpy(&stored, bytes.data() + i * sizeof(T), sizeof(T));
    values[i] = to_float(stored);
  }
}

template <typename T>
void narrow(std::span<const float> values, std::byte* bytes) {
  for (const float value : values) {
    const T stored = from_float<T>(value);
    std::memcpy(bytes, &stored, sizeof(T));
    bytes += sizeof(T);
  }
}

}  // namespace

void dequantize_f32(std::span<const std::byte> bytes, float* values) {
  if (!bytes.empty()) std::memcpy(values, bytes.data(), bytes.size() / 4 * 4);
}

void dequantize_f16(std::span<const std::byte> bytes, float* values) {
  widen<f16>(bytes, values);
}

void dequantize_bf16(std::span<const std::byte> bytes, float* values) {
  widen<bf16>(bytes, values);
}

void quantize_f32(std::span<const float> values, std::byte* bytes) {
  narrow<float>(values, bytes);
}

void quantize_f16(std::span<const float> values, std::byte* bytes) {
  narrow<f16>(values, bytes);
}

void quantize_bf16(std::span<const float> values, std::byte* bytes) {
  narrow<bf16>(values, bytes);
}

}  // namespace pagoda
