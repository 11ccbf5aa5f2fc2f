// The cache as mlx bodies of ops that write to it see it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>

#include "backend/mlx/mlx_op.h"
#include "batch/kv_view.h"
#include "batch/step_batch.h"

namespace pagoda::mlx {

// Adds the view's arrays to an op's inputs, and outputs that share their memory, in their order.
inline void add_cache(const KvView& view, MlxOp& op) {
  for (const Tensor& array : view.arrays()) {
    op.outputs.push_back(
        {array.dtype(), array.shape(), /*memory_of=*/static_cast<int>(op.inputs.size())});
    op.inputs.push_back(array);
  }
}

// Returns what writing to the cache reads of a step. Throws where a slot lies outside: MLX hands it
// to who evaluates or reads.
inline StepBatch batch_of_slots(const Tensor& slot_mapping, const KvView& view) {
  for (const std::int32_t slot : slot_mapping.span<std::int32_t>()) {
    if (slot >= view.num_slots()) {
      throw std::out_of_range(
          fmt::format("[kv_write] expected a slot below {}, got {}", view.num_slots(), slot));
    }
  }
  StepBatch batch;
  batch.num_tokens = static_cast<int>(slot_mapping.extent(0));
  batch.slot_mapping = slot_mapping;
  return batch;
}

}  // namespace pagoda::mlx
