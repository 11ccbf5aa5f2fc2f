// The cache as mlx bodies of ops that write to it see it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>

#include "batch/kv_view.h"
#include "batch/step_batch.h"

namespace pagoda::mlx {

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
