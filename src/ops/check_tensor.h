// Checks of the tensors that ops are given. A tensor that fails a check ends the process: it is the
// caller's mistake (PAGODA_CHECK).
#pragma once

#include <string_view>

#include "tensor/tensor.h"

namespace pagoda {

// Checks that a tensor is contiguous and has this type and shape.
void check_tensor(std::string_view op, std::string_view name, const Tensor& tensor, DType dtype,
                  const Shape& shape);

// Checks that a tensor is contiguous, [n] int32.
void check_list(std::string_view op, std::string_view name, const Tensor& tensor);

// Checks that a tensor is contiguous, [rows, vocab] of floats, and that vocab is not 0.
void check_logits(std::string_view op, const Tensor& logits);
void check_float32_logits(std::string_view op, const Tensor& logits);

// Checks that the vocabulary of logits [rows, vocab] is small enough: the sum of all tokens'
// weights must not overflow (draw/token_weight.h).
void check_weighed_vocabulary(std::string_view op, const Tensor& logits);

}  // namespace pagoda
