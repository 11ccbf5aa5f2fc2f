// upload_list: the host's numbers as a tensor of one extent.
#pragma once

#include <cstdint>
#include <vector>

#include "tensor/exec.h"

namespace pagoda {

// Uploads a list: [values.size()]
template <typename T>
Tensor upload_list(Exec& exec, const std::vector<T>& values) {
  return exec.upload<T>(values, {static_cast<std::int64_t>(values.size())});
}

}  // namespace pagoda
