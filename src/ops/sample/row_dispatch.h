// Code that is shared by the mlx bodies of ops on whole rows of logits: a dispatch with a
// threadgroup for each row (logits_row.metal.h).
#pragma once

#include <cstdint>

#include "backend/gpu/gpu_launch.h"
#include "ops/sample/logits_row_metal.h"
#include "tensor/tensor.h"

namespace pagoda::gpu {

// About how often filters and draws read a row.
inline constexpr double kRowPasses = 8;

// The threadgroup memory that a kernel needs for a row.
enum class RowMemory : std::uint8_t { kScratch, kScratchAndHistogram };

inline GpuDispatch row_dispatch(const GpuFunction& function, std::int64_t num_rows,
                                RowMemory memory) {
  GpuDispatch dispatch;
  dispatch.function = function;
  dispatch.num_groups = {static_cast<int>(num_rows), 1, 1};
  dispatch.num_threads = kRowThreads;
  dispatch.threadgroup_bytes =
      kRowScratchBytes + (memory == RowMemory::kScratchAndHistogram ? kRowHistogramBytes : 0);
  return dispatch;
}

inline unsigned vocab_of(const Tensor& logits) {
  return static_cast<unsigned>(logits.extent(1));
}

// Returns whether rows can be read four float32 logits at once.
inline int has_aligned_rows(const Tensor& logits) {
  return logits.extent(1) % 4 == 0 && logits.offset() % 4 == 0 ? 1 : 0;
}

}  // namespace pagoda::gpu
