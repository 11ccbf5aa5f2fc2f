// KV caches for op cases.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "batch/kv_view.h"
#include "batch/step_batch.h"
#include "core/kv_format.h"

namespace pagoda {

// Returns the same format for keys and values.
constexpr KvFormats both(KvFormat format) {
  return {format, format};
}
// The formats that ops on the cache are tested in: each alone, and mixtures.
inline constexpr KvFormats kKvCaseFormats[] = {
    both(KvFormat::kFloat32),
    both(KvFormat::kBFloat16),
    both(KvFormat::kFloat16),
    both(KvFormat::kInt8),
    {KvFormat::kInt8, KvFormat::kInt4},
    both(KvFormat::kInt4),
    {KvFormat::kBFloat16, KvFormat::kInt8},
};
// Returns whether both formats can hold entries of this size.
bool fit(const KvFormats& formats, std::int64_t head_dim);
// Returns a name such as "bfloat16" or "int8 and int4".
std::string name_of(const KvFormats& formats);

// Allocates a view of a shape [num_blocks, block_size, num_kv_heads, head_dim], zeroed.
Result<KvView> allocate_kv_view(Exec& exec, const KvFormats& formats, const Shape& shape);
// Uploads values of the same shape in the encoding in which the reference's kv_write stores them.
KvEntries upload_kv_entries(Exec& exec, KvFormat format, std::span<const float> values,
                            const Shape& shape);

// Returns a step of one sequence that stores positions[i] in slots[i].
HostBatch write_batch(std::span<const int> positions, std::vector<std::int32_t> slots);

// Returns the arrays as an op's outputs.
std::vector<Tensor> arrays_of(const KvView& view);

}  // namespace pagoda
