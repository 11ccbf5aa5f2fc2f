// The backend's own .metal files, with what they include in place (cmake/metal.cmake).
#pragma once

#include "backend/mlx/metal_launch.h"

namespace pagoda::mlx {

extern const MetalSource kGpuPeaksMetal;
extern const MetalSource kMatrixUnitsMetal;

}  // namespace pagoda::mlx
