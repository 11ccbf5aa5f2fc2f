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

}  // namespace pagoda
