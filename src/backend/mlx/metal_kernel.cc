#include "backend/mlx/metal_kernel.h"

namespace pagoda::mlx {

namespace mx = ::mlx::core;

mx::array run_metal_kernel(const MetalKernel& kernel, const MetalLaunch& launch) {
  const mx::CompileOptions ieee(static_cast<int>(mx::MathMode::Safe));
  const auto run = mx::fast::metal_kernel(kernel.name, kernel.inputs, {"out"}, kernel.body,
                                          /*header=*/"", /*ensure_row_contiguous=*/true,
                                          /*atomic_outputs=*/false, ieee);
  const std::tuple<int, int, int> grid{launch.num_groups_x * launch.num_threads,
                                       launch.num_groups_y, 1};
  return run(launch.inputs, {launch.shape}, {launch.dtype}, grid, {launch.num_threads, 1, 1},
             launch.constants, std::nullopt, /*verbose=*/false, {})[0];
}

}  // namespace pagoda::mlx
