// Functions shared by the native bodies of ops that change logits.
#pragma once

#include <cstdint>
#include <cstring>

#include "tensor/exec.h"

namespace pagoda {

inline Tensor copy_of(Exec& exec, const Tensor& logits) {
  Tensor copy = exec.allocate(logits.dtype(), logits.shape());
  std::memcpy(copy.first_byte(), logits.bytes().data(), logits.bytes().size());
  return copy;
}

// Replaces element `at` of contiguous logits by change(element), computed in float32 and rounded to
// the logits' type.
template <typename Change>
void change_logit(const Tensor& logits, std::int64_t at, const Change& change) {
  const auto apply = [&]<typename T>(T* values) {
    values[at] = from_float<T>(change(to_float(values[at])));
  };
  switch (logits.dtype()) {
    case DType::kFloat32:
      return apply(logits.data<float>());
    case DType::kBFloat16:
      return apply(logits.data<bf16>());
    case DType::kFloat16:
      return apply(logits.data<f16>());
    default:
      break;
  }
  PAGODA_CHECK(false, "[logits] expected a floating type");
}

}  // namespace pagoda
