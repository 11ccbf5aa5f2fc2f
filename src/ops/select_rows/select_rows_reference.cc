#include <algorithm>

#include "ops/select_rows/select_rows.h"

namespace pagoda::reference {

Tensor select_rows(Exec& exec, const Tensor& x, const Tensor& rows) {
  const std::int64_t dim = x.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, {rows.extent(0), dim});
  for (std::int64_t i = 0; i < rows.extent(0); ++i) {
    const float* from = x.data<float>() + rows.data<std::int32_t>()[i] * dim;
    std::copy_n(from, dim, out.data<float>() + i * dim);
  }
  return out;
}

}  // namespace pagoda::reference
