// Affine groups in a safetensors file, as mlx_lm names them.
#pragma once

#include <string>

#include "tests/support/affine_quantizer.h"
#include "tests/support/safetensors_writer.h"

namespace pagoda::testing {

// Adds MODULE.weight, MODULE.scales and MODULE.biases of a matrix of `values` [shape].
inline void add_affine(SafetensorsWriter& writer, const std::string& module,
                       const AffineLayout& layout, const Shape& shape,
                       std::span<const float> values) {
  AffineArrays arrays = quantize_affine(layout, values);
  const std::string_view dtype = traits_of(layout.scale_format).name;
  const Shape groups = {shape[0], shape[1] / layout.group_size};
  writer.add_raw(module + ".weight", {shape[0], shape[1] * layout.bits / 32}, "U32",
                 std::move(arrays.codes));
  writer.add_raw(module + ".scales", groups, dtype, std::move(arrays.scales));
  writer.add_raw(module + ".biases", groups, dtype, std::move(arrays.biases));
}

}  // namespace pagoda::testing
