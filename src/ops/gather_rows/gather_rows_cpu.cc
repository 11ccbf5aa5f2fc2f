#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/cpu_weight.h"
#include "ops/gather_rows/gather_rows.h"

namespace pagoda::cpu {

Tensor gather_rows(Exec& exec, const Weight& weight, const Tensor& ids,
                   const GatherRowsArgs& args) {
  Tensor out = exec.allocate(DType::kFloat32, {ids.extent(0), weight.cols});
  const std::int32_t* wanted = ids.data<std::int32_t>();
  float* to = out.data<float>();
  // A row is spread over its panel in parts of 16 bytes, so reading it takes about a microsecond.
  // More than eight rows are worth a fork.
  pool_of(exec).parallel_for(ids.extent(0), 8, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      float* const row = to + i * weight.cols;
      packed(weight).read_row(wanted[i], row);
      if (args.factor == 1) continue;
      for (std::int64_t k = 0; k < weight.cols; ++k) row[k] *= args.factor;
    }
  });
  return out;
}

}  // namespace pagoda::cpu
