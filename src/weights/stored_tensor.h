// StoredTensor: a tensor as a checkpoint's file describes it, readable here or not.
#pragma once

#include <string>

#include "quant/host_tensor.h"

namespace pagoda {

struct StoredTensor {
  HostTensor tensor;
  // Why nothing here reads it ("Q4_K"; then tensor.bytes is empty); empty for one that can be read.
  // Not an error until somebody asks for that tensor.
  std::string unsupported;
};

}  // namespace pagoda
