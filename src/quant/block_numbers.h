// BlockNumbers: the place in a format's blocks of their scale and minimum. Values are linear in
// these.
#pragma once

#include <cstddef>

#include "quant/weight_format.h"

namespace pagoda {

// `count` adjacent numbers of a plain format: a block's scale, and then its minimum, or its
// minimum's scale, if it has one. For a plain format they are the values themselves.
struct BlockNumbers {
  WeightFormat format = WeightFormat::kF16;
  std::size_t offset = 0;  // in a block, bytes
  std::size_t count = 1;
};

// Returns the place of the numbers in a format's blocks. REQUIRES: the format is not kAffine, whose
// scales and biases are separate arrays, nor kMXFP4, whose scales are exponents.
BlockNumbers block_numbers(WeightFormat format);

}  // namespace pagoda
