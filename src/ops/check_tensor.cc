#include "ops/check_tensor.h"

#include <fmt/format.h>

#include "core/status.h"
#include "draw/token_weight.h"

namespace pagoda {

void check_tensor(std::string_view op, std::string_view name, const Tensor& tensor, DType dtype,
                  const Shape& shape) {
  PAGODA_CHECK(
      tensor.dtype() == dtype && tensor.shape() == shape && tensor.is_contiguous(),
      fmt::format("[{}] {}: expected contiguous {} {}, got {} {}", op, name, to_string(shape),
                  dtype_name(dtype), to_string(tensor.shape()), dtype_name(tensor.dtype())));
}

void check_list(std::string_view op, std::string_view name, const Tensor& tensor) {
  PAGODA_CHECK(
      tensor.dtype() == DType::kInt32 && tensor.shape().rank() == 1 && tensor.is_contiguous(),
      fmt::format("[{}] {}: expected contiguous [n] int32, got {} {}", op, name,
                  to_string(tensor.shape()), dtype_name(tensor.dtype())));
}

void check_logits(std::string_view op, const Tensor& logits) {
  PAGODA_CHECK(logits.dtype() != DType::kInt32 && logits.shape().rank() == 2 &&
                   logits.extent(1) > 0 && logits.is_contiguous(),
               fmt::format("[{}] logits: expected contiguous [rows, vocab], got {} {}", op,
                           to_string(logits.shape()), dtype_name(logits.dtype())));
}

void check_float32_logits(std::string_view op, const Tensor& logits) {
  check_logits(op, logits);
  PAGODA_CHECK(
      logits.dtype() == DType::kFloat32,
      fmt::format("[{}] logits: expected float32, got {}", op, dtype_name(logits.dtype())));
}

void check_weighed_vocabulary(std::string_view op, const Tensor& logits) {
  PAGODA_CHECK(logits.extent(1) <= kMaxWeighedTokens,
               fmt::format("[{}] logits: expected a vocabulary of {} at most, got {}", op,
                           kMaxWeighedTokens, logits.extent(1)));
}

}  // namespace pagoda
