// Rows of a checkpoint's tensors, in whatever format: decoded, and multiplied by powers of two.
//
// A product with a power of two keeps the format. Of a plain row it changes every value, of blocks
// and affine groups their scales and minima alone, in which their values are linear. It is exact or
// does not happen.
//
// A matrix [rows, cols] has rows of cols values; a vector [rows], such as a bias, rows of one.
#pragma once

#include <algorithm>
#include <span>

#include "quant/host_tensor.h"

namespace pagoda {

// Writes row `row` as float32.
void read_row(const HostTensor& tensor, std::int64_t row, float* values);

// The exponents e for which every number of some rows times 2^e is in its format again, rounded
// nowhere. 0 is among them.
struct ExponentRange {
  static constexpr int kWidest = 16;  // well inside what products in float32 hold
  int least = -kWidest;
  int most = kWidest;

  // Keeps those that are in `other` too.
  void intersect(const ExponentRange& other) {
    least = std::max(least, other.least);
    most = std::min(most, other.most);
  }
  bool operator==(const ExponentRange&) const = default;
};

// Returns the exponents that are exact for row `row`: none but 0 where a number is not finite, or
// where the row has no whole block of its own. Numbers of 32 bits and of bfloat16 stay normal, for
// some devices take subnormal ones as zeros.
ExponentRange exact_exponents(const HostTensor& tensor, std::int64_t row);

// Returns the tensor with row i times 2^exponents[i], in memory of its own; codes of affine groups
// stay where they are. REQUIRES: exponents [rows], each exact for its row.
HostTensor scale_rows(const HostTensor& tensor, std::span<const int> exponents);

// Returns `count` rows from row `first` on, in the tensor's own bytes. REQUIRES: rows of whole blocks,
// as every format has them.
HostTensor slice_rows(const HostTensor& tensor, std::int64_t first, std::int64_t count);

}  // namespace pagoda
