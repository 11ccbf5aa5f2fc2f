// An MLX that has no Metal: on Linux, or on a Mac without an Apple GPU.
#include <stdexcept>

#include "backend/mlx/metal_dispatch.h"

namespace pagoda::mlx {

bool metal_is_available() {
  return false;
}

void build_pipeline(const gpu::GpuFunction&) {
  throw std::runtime_error("this MLX has no Metal");
}

std::uint64_t num_late_pipelines() {
  return 0;
}

void dispatch_launch(::mlx::core::Stream, const gpu::GpuLaunch&, std::span<const MetalInput>,
                     std::span<::mlx::core::array>) {
  throw std::runtime_error("this MLX has no Metal");
}

}  // namespace pagoda::mlx
