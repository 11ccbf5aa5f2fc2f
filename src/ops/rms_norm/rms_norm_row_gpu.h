// How the kernels of rms_norm and add_rms_norm divide a row among threads.
#pragma once

#include <algorithm>
#include <cstdint>

#include "backend/gpu/gpu_launch.h"
#include "backend/gpu/gpu_op.h"

namespace pagoda::gpu {

// The division of a row. It depends on dim alone, and so does the order of a row's sum.
struct RowSplit {
  explicit RowSplit(std::int64_t dim)
      : width(dim % 4 == 0 ? 4 : 1),
        simd_groups_per_row(std::clamp(num_groups_of(dim, std::int64_t{32} * width), 1, 16)),
        rows_per_group(std::max(8 / simd_groups_per_row, 1)) {}

  // Fills in the function, whose template argument is the width, and the extents of a dispatch.
  void apply(const GpuSource* source, std::int64_t num_rows, GpuDispatch& dispatch) const {
    const int simd_groups = simd_groups_per_row * rows_per_group;
    dispatch.function = {
        .source = source, .name = source->name, .arguments = {width == 4 ? "4" : "1"}};
    dispatch.num_groups = {num_groups_of(num_rows, rows_per_group), 1, 1};
    dispatch.num_threads = 32 * simd_groups;
    dispatch.threadgroup_bytes = simd_groups * static_cast<int>(sizeof(float));
  }

  int width;                // values that a thread takes at once
  int simd_groups_per_row;  // 512 threads at most, which every pipeline can have
  int rows_per_group;       // of a threadgroup
};

}  // namespace pagoda::gpu
