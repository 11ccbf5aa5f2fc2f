// Tensors of arbitrary values, with which a backend calls ops only to list their kernels
// (Exec::prepare_kernels). The results are not read.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/exec.h"

namespace pagoda {

// Uploads zeros, [count] int32.
inline Tensor unread_integers(Exec& exec, std::int64_t count) {
  return exec.upload<std::int32_t>(std::vector<std::int32_t>(count), {count});
}

// Uploads ones, [count] float32.
inline Tensor unread_floats(Exec& exec, std::int64_t count) {
  return exec.upload<float>(std::vector<float>(count, 1.0f), {count});
}

}  // namespace pagoda
