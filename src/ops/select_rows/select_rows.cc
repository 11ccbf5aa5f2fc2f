#include "ops/select_rows/select_rows.h"

#include <fmt/format.h>

#include "ops/check_tensor.h"

namespace pagoda {

Tensor select_rows(Exec& exec, const Tensor& x, const Tensor& rows) {
  PAGODA_CHECK(x.shape().rank() == 2 && x.is_contiguous(),
               fmt::format("[select_rows] x: expected contiguous [tokens, dim], got {}",
                           to_string(x.shape())));
  check_list("select_rows", "rows", rows);
  const OpTimer timer(exec, [&] {
    return OpCall{.op = "select_rows",
                  .read_bytes = static_cast<double>(rows.extent(0) * x.extent(1)) *
                                static_cast<double>(dtype_size(x.dtype()))};
  });
  static constexpr Bodies<decltype(reference::select_rows)> kBodies{
      reference::select_rows, cpu::select_rows, gpu::select_rows};
  return kBodies.of(exec)(exec, x, rows);
}

}  // namespace pagoda
