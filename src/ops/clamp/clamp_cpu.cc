#include <algorithm>

#include "backend/cpu/cpu_exec.h"
#include "ops/clamp/clamp.h"

namespace pagoda::cpu {
namespace {

constexpr std::int64_t kNumbersTogether = 16384;  // about four microseconds, what a fork costs

}  // namespace

Tensor clamp(Exec& exec, const Tensor& x, const ClampArgs& args) {
  const std::int64_t dim = x.extent(1);
  Tensor out = exec.allocate(DType::kFloat32, x.shape());
  const std::int64_t rows_together = std::max<std::int64_t>(kNumbersTogether / dim, 1);
  const std::int64_t parts = (x.extent(0) + rows_together - 1) / rows_together;
  pool_of(exec).parallel_for(parts, 1, [&](std::int64_t begin, std::int64_t end, int) {
    const std::int64_t last = std::min(end * rows_together, x.extent(0));
    for (std::int64_t row = begin * rows_together; row < last; ++row) {
      const float* from = x.data<float>() + row * x.stride(0);
      float* to = out.data<float>() + row * dim;
      for (std::int64_t i = 0; i < dim; ++i) to[i] = std::clamp(from[i], -args.limit, args.limit);
    }
  });
  return out;
}

}  // namespace pagoda::cpu
