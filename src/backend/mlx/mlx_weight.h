// A weight as MLX reads it.
//
// Plain types stay as they are. Blocks become MLX's affine groups of 32, w = scale * q + bias with
// q in [0, 2^bits), wherever such a group can say exactly what the block says: every product of a
// scale and a q below fits a float32.
//
//                bits  q                 scale    bias        bits a value: here, in the file
//     Q4_0        4    q                 d        -8 d         6     4.5
//     Q4_1        4    q                 d        m            6     5
//     Q4_K        4    q                 d s      -dmin m      6     4.5
//     Q5_0        5    q                 d        -16 d        7     5.5
//     Q5_1        5    q                 d        m            7     6
//     Q5_K        5    q                 d s      -dmin m      7     5.5
//     Q8_0        8    q + 128           d        -128 d      10     8.5
//     IQ4_NL      8    level + 128       d        -128 d      10     4.5
//     IQ4_XS      8    level + 128       d s      -128 d s    10     4.25
//     Q3_K        8    s q + 124         d        -124 d      10     3.4375
//
// Q3_K has groups of 16, but s q is one of -124 .. 128 in all of them. Q2_K (another minimum every
// 16 values) and Q6_K (s q takes 13 bits) have no such group: they are decoded and kept as float16,
// 16 bits a value instead of 2.625 and 6.5625, each value rounded by up to 2^-11 of itself.
//
// Affine groups of a checkpoint (quant/affine.h) stay as they are, of 32, 64 or 128; their scales
// and biases are widened, which is exact.
//
//   values          [rows, cols * bits / 32] uint32; a row's q are one stream of bits, that of
//                   column c from bit c * bits up
//   scales, biases  [rows, cols / group_size] float32
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
  std::int64_t rows = 0;
  int bits = 0;        // of an affine group's values; 0: a plain type
  int group_size = 0;  // columns; 0: a plain type
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
