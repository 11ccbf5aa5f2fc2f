#include <mlx/fast.h>
#include <mlx/ops.h>

#include "backend/mlx/mlx_exec.h"
#include "ops/rms_norm/rms_norm.h"

namespace pagoda::mlx {

Tensor rms_norm(Exec& exec, const Tensor& x, const Tensor& weight, const RmsNormArgs& args) {
  return mlx_exec(exec).build("rms_norm", x.dtype(), x.shape(), [&] {
    // Widened first: the library would round the norm to x's type before the weight multiplies it.
    const mx::array wide = mx::astype(array_of(x), mx::float32);
    return mx::astype(mx::fast::rms_norm(wide, array_of(weight), args.eps), to_mlx(x.dtype()));
  });
}

}  // namespace pagoda::mlx
