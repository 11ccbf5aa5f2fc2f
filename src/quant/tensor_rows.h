// Rows of a checkpoint's tensors, in whatever format: decoded, and multiplied by powers of two.
//
// Multiplying by a power of two keeps the format. In a plain row it changes every value. In blocks
// and affine groups it changes only the scales and minima (biases), in which the values are linear.
// Only exact products are made.
//
// A matrix [rows, cols] has rows of cols values; a vector [rows], such as a bias, rows of one.
#pragma once

#include <algorithm>
#include <span>
#include <vector>

#include "quant/host_tensor.h"

namespace pagoda {

// Returns row `row` as the format has it: a view, or a copy in `scratch` if the tensor's numbers lie
// otherwise. REQUIRES: no affine groups, and rows of whole blocks.
std::span<const std::byte> row_bytes(const HostTensor& tensor, std::int64_t row,
                                     std::vector<std::byte>& scratch);

// Writes row `row` as float32.
void read_row(const HostTensor& tensor, std::int64_t row, float* values);

// The exponents e for which every number of some rows times 2^e is exact in its format. 0 is always
// among them.
struct ExponentRange {
  static constexpr int kWidest = 16;  // well within float32's range, also for products
  int least = -kWidest;
  int most = kWidest;

  // Keeps the exponents that `other` has too.
  void intersect(const ExponentRange& other) {
    least = std::max(least, other.least);
    most = std::min(most, other.most);
  }
  bool operator==(const ExponentRange&) const = default;
};

// Returns the exponents that are exact for row `row`. Only 0 is, if a number is not finite or if the
// row does not lie in the tensor's bytes as whole blocks. float32 and bfloat16 numbers stay normal,
// because some devices treat subnormal numbers as zeros.
ExponentRange exact_exponents(const HostTensor& tensor, std::int64_t row);

// Returns the tensor with row i times 2^exponents[i], in memory of its own. Codes of affine groups
// are shared with the source. REQUIRES: exponents [rows], each exact for its row.
HostTensor scale_rows(const HostTensor& tensor, std::span<const int> exponents);

// Returns every `step`-th row of a matrix with Mxfp4Scales from row `first` on, as a view. REQUIRES:
// a multiple of `step` rows, and rows that follow one another.
HostTensor rows_in_turn(const HostTensor& tensor, std::int64_t first, std::int64_t step);

// Returns `count` rows from row `first` on, as a view of the tensor's bytes. REQUIRES: rows of
// whole blocks.
HostTensor slice_rows(const HostTensor& tensor, std::int64_t first, std::int64_t count);

}  // namespace pagoda
