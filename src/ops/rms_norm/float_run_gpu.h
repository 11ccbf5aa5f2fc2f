// The alignment of floats, for kernels that read several at once (ops/rms_norm/float_run.metal.h).
#pragma once

#include "tensor/tensor.h"

namespace pagoda::gpu {

// Returns whether each row of x (its last extent) begins at a multiple of 16 bytes. REQUIRES: the
// array that x is a part of does.
inline bool rows_are_aligned(const Tensor& x) {
  bool is_aligned = x.offset() % 4 == 0;
  for (int i = 0; i + 1 < x.shape().rank(); ++i)
    is_aligned = is_aligned && (x.extent(i) == 1 || x.stride(i) % 4 == 0);
  return is_aligned;
}

}  // namespace pagoda::gpu
