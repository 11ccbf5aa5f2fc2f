// Tensors for tests: values in a format with memory of their own, and the values that reads of
// their rows give.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "quant/owned_bytes.h"
#include "quant/tensor_rows.h"
#include "tests/support/reference_quantizers.h"

namespace pagoda::testing {

// Makes a tensor of `values` [shape] in a format that is not affine (make_affine() makes those).
inline HostTensor make_quantized(WeightFormat format, const Shape& shape,
                                 std::span<const float> values) {
  const auto storage = std::make_shared<OwnedBytes>(quantize(format, values));
  return {.name = "rows",
          .format = format,
          .shape = shape,
          .bytes = storage->bytes,
          .storage = storage};
}

// Returns the values of a row of a matrix [rows, cols], or one value of a vector [rows].
inline std::vector<float> row_values(const HostTensor& tensor, std::int64_t row) {
  std::vector<float> values(tensor.shape.rank() == 2 ? tensor.shape[1] : 1);
  read_row(tensor, row, values.data());
  return values;
}

}  // namespace pagoda::testing
