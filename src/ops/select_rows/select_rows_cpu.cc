#include <algorithm>

#include "backend/cpu/cpu_exec.h"
#include "ops/select_rows/select_rows.h"

namespace pagoda::cpu {

Tensor select_rows(Exec& exec, const Tensor& x, const Tensor& rows) {
  const std::int64_t dim = x.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, {rows.extent(0), dim});
  const float* from = x.data<float>();
  const std::int32_t* wanted = rows.data<std::int32_t>();
  for (std::int64_t i = 0; i < rows.extent(0); ++i) {
    std::copy_n(from + wanted[i] * dim, dim, out.data<float>() + i * dim);
  }
  return out;
}

}  // namespace pagoda::cpu
