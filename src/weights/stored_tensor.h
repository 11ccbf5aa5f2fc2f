// StoredTensor: a tensor as a checkpoint's file describes it, readable here or not.
#pragma once

#include <string>

#include "quant/host_tensor.h"

namespace pagoda {

struct StoredTensor {
  HostTensor tensor;
  // Why nothing here reads it ("IQ3_S"; then tensor.bytes is empty); empty for one that can be
  // read. Not an error until a caller asks for that tensor.
  std::string unsupported;
  // Words of 32 bits: nothing that is read alone, so `unsupported` says "U32", but the codes of
  // affine groups where scales and biases stand beside them. tensor.bytes is there.
  bool is_words = false;
};

}  // namespace pagoda
