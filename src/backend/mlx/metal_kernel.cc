#include "backend/mlx/metal_kernel.h"

namespace pagoda::mlx {

namespace mx = ::mlx::core;

MetalKernel make_metal_kernel(std::string name, const std::vector<std::string>& inputs,
                              const std::string& body) {
  const mx::CompileOptions ieee(static_cast<int>(mx::MathMode::Safe));
  auto run = mx::fast::metal_kernel(name, inputs, {"out"}, body, /*header=*/"",
                                    /*ensure_row_contiguous=*/true, /*atomic_outputs=*/false, ieee);
  return {.name = std::move(name), .run = std::move(run)};
}

}  // namespace pagoda::mlx
