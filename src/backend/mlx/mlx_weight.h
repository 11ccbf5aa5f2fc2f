// A weight as MLX reads it.
//
// Plain types stay as they are. Blocks of Q4_0, Q4_1 and Q8_0 become MLX's affine groups of 32, w =
// scale * q + bias with q in [0, 2^bits), without any loss: a product of a scale (11 bits) and q
// (8) fits a float32.
//
//            bits  q            scale  bias
//     Q4_0   4     q            d      -8 d
//     Q4_1   4     q            d      m
//     Q8_0   8     q + 128      d      -128 d
//
//   values  [rows, cols * bits / 32] uint32; q of column c at bit (c * bits) % 32 of word c * bits
//   / 32 scales, biases  [rows, cols / 32] float32
//
// Scales are float32 because the product's operands have one type in MLX, and that type is also the
// product's accumulator on a CPU: one row of 1,536 x 4,096 4-bit weights takes 4.3 ms with float32
// operands, 37 ms with bfloat16 and 182 ms with float16 (MLX 0.32.4, x86-64), and only the first is
// accurate.
#pragma once

#include <mlx/array.h>

#include <optional>
#include <vector>

#include "backend/weight.h"

namespace pagoda::mlx {

// Consecutive rows in one layout.
struct WeightSegment {
  static constexpr int kGroupSize = 32;

  std::int64_t rows = 0;
  int bits = 0;  // of an affine group's values; 0: a plain type
  ::mlx::core::array values;
  std::optional<::mlx::core::array> scales;
  std::optional<::mlx::core::array> biases;
};

struct MlxWeight final : PackedWeight {
  std::vector<WeightSegment> segments;  // in the order of rows

  std::int64_t num_bytes() const override;
};

inline const MlxWeight& mlx_weight(const Weight& weight) {
  return static_cast<const MlxWeight&>(*weight.packed);
}

}  // namespace pagoda::mlx
