// BlockNumbers: where the numbers stand that the values of a format's blocks are linear in.
#pragma once

#include <cstddef>

#include "quant/weight_format.h"

namespace pagoda {

// `count` numbers of a plain format, side by side: a block's scale, and its minimum's where it has
// one. A plain format's are its values themselves.
struct BlockNumbers {
  WeightFormat format = WeightFormat::kF16;
  std::size_t offset = 0;  // in a block, bytes
  std::size_t count = 1;
};

// Returns the numbers of a format's blocks. REQUIRES: it is not kAffine, whose groups have arrays of
// their own.
BlockNumbers block_numbers(WeightFormat format);

}  // namespace pagoda
