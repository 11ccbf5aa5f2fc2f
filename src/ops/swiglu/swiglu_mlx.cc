#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "ops/swiglu/swiglu.h"

namespace pagoda::mlx {

Tensor swiglu(Exec& exec, const Tensor& gate_up) {
  const Shape shape{gate_up.extent(0), gate_up.extent(1) / 2};
  return mlx_exec(exec).build("swiglu", gate_up.dtype(), shape, [&] {
    const auto halves = mx::split(mx::astype(array_of(gate_up), mx::float32), 2, 1);
    const mx::array silu = mx::multiply(halves[0], mx::sigmoid(halves[0]));
    return mx::astype(mx::multiply(silu, halves[1]), to_mlx(gate_up.dtype()));
  });
}

}  // namespace pagoda::mlx
