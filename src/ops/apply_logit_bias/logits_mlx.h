// Code that the mlx bodies of the ops on logits of any type share.
#pragma once

#include <string_view>

#include "core/check.h"
#include "core/dtype.h"

namespace pagoda::mlx {

// Returns the name that Metal has for the logits' type.
inline std::string_view metal_type_of(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return "float";
    case DType::kBFloat16:
      return "bfloat";
    case DType::kFloat16:
      return "half";
    case DType::kInt32:
      break;
  }
  PAGODA_CHECK(false, "[logits] expected a floating type");
  return {};
}

}  // namespace pagoda::mlx
