#include "ops/select_rows/select_rows.h"

#include <fmt/format.h>

namespace pagoda {

Tensor select_rows(Exec& exec, const Tensor& x, const Tensor& rows) {
  PAGODA_CHECK(x.shape().rank() == 2 && x.is_contiguous(),
               fmt::format("[select_rows] x: expected contiguous [tokens, dim], got {}",
                           to_string(x.shape())));
  PAGODA_CHECK(rows.dtype() == DType::kInt32 && rows.shape().rank() == 1 && rows.is_contiguous(),
               fmt::format("[select_rows] rows: expected [n] int32, got {} {}",
                           to_string(rows.shape()), dtype_name(rows.dtype())));
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "select_rows",
                  .read_bytes = static_cast<double>(rows.extent(0) * x.extent(1)) *
                                static_cast<double>(dtype_size(x.dtype()))};
  });
  static constexpr Bodies<decltype(reference::select_rows)> kBodies{
      reference::select_rows, cpu::select_rows, mlx::select_rows, cuda::select_rows};
  return kBodies.of(exec)(exec, x, rows);
}

}  // namespace pagoda
