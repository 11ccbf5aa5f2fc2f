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

// Adds a tensor in groups of the layout and returns true. If its rows are not whole groups, adds it
// as it is, like mlx_lm, and returns false.
inline bool add_affine_or_plain(SafetensorsWriter& writer, const HostTensor& tensor,
                                const AffineLayout& layout, std::span<const float> values) {
  if (tensor.shape.rank() != 2 || tensor.shape[1] % layout.group_size != 0) {
    writer.add(tensor.name, tensor.shape, tensor.format, values);
    return false;
  }
  const std::string module =
      tensor.name.substr(0, tensor.name.size() - std::string(".weight").size());
  add_affine(writer, module, layout, tensor.shape, values);
  return true;
}

}  // namespace pagoda::testing
