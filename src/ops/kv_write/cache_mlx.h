// The cache as mlx bodies of ops that write to it see it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>
#include <string_view>

#include "batch/kv_view.h"
#include "batch/step_batch.h"

namespace pagoda::mlx {

// Returns the name that Metal has for a cache's type.
inline std::string_view cache_type(const KvView& view) {
  switch (view.keys.dtype()) {
    case DType::kFloat32:
      return "float";
    case DType::kBFloat16:
      return "bfloat";
    case DType::kFloat16:
      return "half";
    case DType::kInt32:
      break;
  }
  PAGODA_CHECK(false, "[kv_write] a cache of int32");
  return {};
}

inline std::int64_t num_slots(const KvView& view) {
  return view.num_blocks() * view.block_size();
}

// Returns what writing to the cache reads of a step. Throws where a slot lies outside: MLX hands it
// to who evaluates or reads.
inline StepBatch batch_of_slots(const Tensor& slot_mapping, const KvView& view) {
  for (const std::int32_t slot : slot_mapping.span<std::int32_t>()) {
    if (slot >= num_slots(view)) {
      throw std::out_of_range(
          fmt::format("[kv_write] expected a slot below {}, got {}", num_slots(view), slot));
    }
  }
  StepBatch batch;
  batch.num_tokens = static_cast<int>(slot_mapping.extent(0));
  batch.slot_mapping = slot_mapping;
  return batch;
}

}  // namespace pagoda::mlx
