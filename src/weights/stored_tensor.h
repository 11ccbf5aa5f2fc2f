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
  // The tensor has 32-bit words, or bytes. Alone it is not supported, so `unsupported` is "U32" or
  // "U8". With other tensors beside it, it has the codes or the scales of a matrix, so tensor.bytes
  // is present (weights/affine_tensor.h, weights/mxfp4_tensor.h).
  bool is_words = false;
  bool is_bytes = false;
};

}  // namespace pagoda
