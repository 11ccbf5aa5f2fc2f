// Apart from metal_kernel.cc, so that a test can put its own launch in this one's place.
#include "backend/mlx/metal_kernel.h"

namespace pagoda::mlx {

::mlx::core::array run_metal_kernel(const MetalKernel& kernel, const MetalLaunch& launch) {
  const std::tuple<int, int, int> grid{launch.num_groups_x * launch.num_threads,
                                       launch.num_groups_y, 1};
  return kernel.run(launch.inputs, {launch.shape}, {launch.dtype}, grid, {launch.num_threads, 1, 1},
                    launch.constants, /*init_value=*/std::nullopt,
                    /*verbose=*/false, /*stream=*/{})[0];
}

}  // namespace pagoda::mlx
