// What the cpu product's target-specific code and the code around it share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "backend/cpu/cpu_exec.h"
#include "backend/cpu/cpu_weight.h"

namespace pagoda::cpu {

// Rows are shared out in multiples of this, a multiple of every target's block of rows.
inline constexpr std::int64_t kInterleaveGrain = 24;

// Panels that a thread decodes into memory at a time, at most.
inline constexpr std::int64_t kMostPanelsDecoded = 2;

// Rows of x times one segment of a weight.
struct SegmentProduct {
  const float* x = nullptr;  // [num_rows, cols]
  std::int64_t x_stride = 0;
  const float* interleaved = nullptr;  // the same in blocks of [cols, rows of the block]
  std::int64_t num_rows = 0;
  std::int64_t cols = 0;
  WeightFormat format = WeightFormat::kF32;
  const std::byte* panels = nullptr;
  std::int64_t panel_bytes = 0;
  std::int64_t num_columns = 0;  // of the segment's outputs
  float* out = nullptr;          // [num_rows, num_columns]
  std::int64_t out_stride = 0;
  const float* bias = nullptr;  // [num_columns], or null
};

}  // namespace pagoda::cpu
