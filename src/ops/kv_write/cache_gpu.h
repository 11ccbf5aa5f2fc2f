// The KV cache among the inputs and outputs of mlx ops that write to it.
#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <stdexcept>

#include "backend/gpu/gpu_op.h"
#include "batch/kv_view.h"
#include "batch/step_batch.h"

namespace pagoda::gpu {

// Adds the view's arrays, in order, to an op's inputs, and adds outputs that share their memory.
inline void add_cache(const KvView& view, GpuOp& op) {
  for (const Tensor& array : view.arrays()) {
    op.outputs.push_back(
        {array.dtype(), array.shape(), /*memory_of=*/static_cast<int>(op.inputs.size())});
    op.inputs.push_back(array);
  }
}

// The indices of a view's arrays among an op's inputs or outputs, beginning with `first`.
class CacheArrays {
 public:
  CacheArrays(const KvView& view, int first)
      : has_key_scales_(view.keys.scales.defined()),
        has_value_scales_(view.values.scales.defined()),
        keys_(first),
        values_(first + (has_key_scales_ ? 2 : 1)) {}

  bool has_key_scales() const { return has_key_scales_; }
  bool has_value_scales() const { return has_value_scales_; }
  bool has_codes() const { return has_key_scales_ || has_value_scales_; }
  int keys() const { return keys_; }
  int values() const { return values_; }
  // REQUIRES: has_codes(). If only keys or only values have scales, both functions return theirs.
  int key_scales() const { return has_key_scales_ ? keys_ + 1 : values_ + 1; }
  int value_scales() const { return has_value_scales_ ? values_ + 1 : keys_ + 1; }

 private:
  bool has_key_scales_;
  bool has_value_scales_;
  int keys_;
  int values_;
};

// Returns the parts of a step that a write to the cache reads. Throws if a slot is outside the
// cache: evaluate() or read() of the Exec then returns the error.
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

}  // namespace pagoda::gpu
