#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "ops/add_rms_norm/add_rms_norm.h"

namespace pagoda::mlx {

AddRmsNormResult add_rms_norm(Exec& exec, const Tensor& x, const Tensor& delta,
                              const Tensor& weight, const RmsNormArgs& args) {
  const Tensor sum = mlx_exec(exec).build("add_rms_norm", x.dtype(), x.shape(), [&] {
    return mx::astype(mx::add(array_of(x), array_of(delta)), to_mlx(x.dtype()));
  });
  return {.sum = sum, .normed = mlx::rms_norm(exec, sum, weight, args)};
}

}  // namespace pagoda::mlx
