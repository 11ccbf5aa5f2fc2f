// StoredTensor: a tensor as a checkpoint's file describes it, whether or not its type is supported.
#pragma once

#include <string>

#include "quant/host_tensor.h"

namespace pagoda {

struct StoredTensor {
  HostTensor tensor;
  // The type that nothing here reads ("IQ3_S"; then tensor.bytes is empty); empty for a supported
  // type. It is no error until a caller requests the tensor.
  std::string unsupported;
  // The tensor has 32-bit words. Alone it is not supported, so `unsupported` is "U32". With scales
  // and biases beside it, it is the codes of affine groups, so tensor.bytes is present.
  bool is_words = false;
};

}  // namespace pagoda
