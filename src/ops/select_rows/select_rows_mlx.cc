#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "ops/select_rows/select_rows.h"

namespace pagoda::mlx {

Tensor select_rows(Exec& exec, const Tensor& x, const Tensor& rows) {
  return mlx_exec(exec).build("select_rows", x.dtype(), {rows.extent(0), x.extent(1)},
                              [&] { return mx::take(array_of(x), array_of(rows), 0); });
}

}  // namespace pagoda::mlx
