#include "backend/reference/reference_weight.h"
#include "ops/gather_rows/gather_rows.h"

namespace pagoda::reference {

Tensor gather_rows(Exec& exec, const Weight& weight, const Tensor& ids,
                   const GatherRowsArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, {ids.extent(0), weight.cols});
  for (std::int64_t i = 0; i < ids.extent(0); ++i) {
    float* const row = out.data<float>() + i * weight.cols;
    packed(weight).read_row(ids.data<std::int32_t>()[i], row);
    for (std::int64_t k = 0; k < weight.cols; ++k) row[k] *= args.factor;
  }
  return out;
}

}  // namespace pagoda::reference
