#include "ops/argmax/argmax.h"

#include <mlx/ops.h>

#include "ops/sample/rows_mlx.h"

namespace pagoda::mlx {

Tensor argmax(Exec& exec, const Tensor& logits) {
  return mlx_exec(exec).build("argmax", DType::kInt32, {logits.extent(0)}, [&] {
    const mx::array x = array_of(logits);
    return or_fault(mx::astype(mx::argmax(x, 1), mx::int32), x);
  });
}

}  // namespace pagoda::mlx
