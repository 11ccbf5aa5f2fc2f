// A quantiser into MLX's affine groups for tests: scale = (max - min) / (2^bits - 1) and bias = min
// of each group. Both are rounded to their type before the codes are chosen.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "quant/host_tensor.h"
#include "tests/support/reference_quantizers.h"

namespace pagoda::testing {

struct AffineArrays {
  std::vector<std::byte> codes;
  std::vector<std::byte> scales;
  std::vector<std::byte> biases;
};

inline float rounded_to(WeightFormat format, float value) {
  return dequantize(format, quantize(format, std::span(&value, 1)))[0];
}

// Quantizes values. REQUIRES: values.size() is a multiple of the group's size.
inline AffineArrays quantize_affine(const AffineLayout& layout, std::span<const float> values) {
  const auto group_size = static_cast<std::size_t>(layout.group_size);
  const auto bits = static_cast<std::size_t>(layout.bits);
  const float largest_code = static_cast<float>((1 << layout.bits) - 1);
  std::vector<float> scales, biases;
  AffineArrays arrays;
  arrays.codes.resize(values.size() * bits / 8);
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (i % group_size == 0) {
      const std::span<const float> group = values.subspan(i, group_size);
      const auto [low, high] = std::minmax_element(group.begin(), group.end());
      scales.push_back(rounded_to(layout.scale_format, (*high - *low) / largest_code));
      biases.push_back(rounded_to(layout.scale_format, *low));
    }
    const float steps = scales.back() == 0 ? 0 : (values[i] - biases.back()) / scales.back();
    const int code = static_cast<int>(std::clamp(std::round(steps), 0.0f, largest_code));
    for (std::size_t bit = 0; bit < bits; ++bit) {
      const std::size_t at = i * bits + bit;
      arrays.codes[at / 8] |= static_cast<std::byte>((code >> bit & 1) << at % 8);
    }
  }
  arrays.scales = quantize(layout.scale_format, scales);
  arrays.biases = quantize(layout.scale_format, biases);
  return arrays;
}

// Counts the bytes that were released.
class AffineStorage final : public HostStorage {
 public:
  void release_pages(std::span<const std::byte> bytes) const override { released += bytes.size(); }
  AffineArrays arrays;
  mutable std::size_t released = 0;
};

// Makes an affine matrix of `values` [shape] that owns its arrays.
inline HostTensor make_affine(const std::string& name, const AffineLayout& layout,
                              const Shape& shape, std::span<const float> values) {
  auto storage = std::make_shared<AffineStorage>();
  storage->arrays = quantize_affine(layout, values);
  return {.name = name,
          .format = WeightFormat::kAffine,
          .shape = shape,
          .bytes = storage->arrays.codes,
          .storage = storage,
          .affine = AffineGroups{.layout = layout,
                                 .scales = storage->arrays.scales,
                                 .biases = storage->arrays.biases,
                                 .scales_storage = storage,
                                 .biases_storage = storage}};
}

}  // namespace pagoda::testing
