// The keys' offset of rope_kv_write's native bodies.
#pragma once

#include <cstdint>

#include "tensor/tensor.h"

namespace pagoda {

// Takes offset [num_kv_heads, head_dim] from each token's keys [tokens, num_kv_heads, head_dim], in
// place; both contiguous. Does nothing where the offset is undefined.
inline void take_offset(const Tensor& keys, const Tensor& offset) {
  if (!offset.defined()) return;
  const std::int64_t width = offset.num_elements();
  const float* const from = offset.data<float>();
  float* key = keys.data<float>();
  for (std::int64_t t = 0; t < keys.extent(0); ++t, key += width) {
    for (std::int64_t i = 0; i < width; ++i) key[i] -= from[i];
  }
}

}  // namespace pagoda
