// The subtraction of the keys' offset in rope_kv_write's native bodies.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace pagoda {

// Subtracts offset [num_kv_heads, head_dim] from the keys [tokens, num_kv_heads, head_dim] of
// tokens [begin, end), in place; both are contiguous. Does nothing if the offset is undefined.
inline void take_offset(const Tensor& keys, const Tensor& offset, std::int64_t begin,
                        std::int64_t end) {
  if (!offset.defined()) return;
  const std::int64_t width = offset.num_elements();
  const float* const from = offset.data<float>();
  float* key = keys.data<float>() + begin * width;
  for (std::int64_t t = begin; t < end; ++t, key += width) {
    for (std::int64_t i = 0; i < width; ++i) key[i] -= from[i];
  }
}

}  // namespace pagoda
