#include "ops/kv_copy_blocks/kv_copy_blocks.h"

namespace pagoda::reference {
namespace {

void copy(const Tensor& cache, const BlockCopy& copy) {
  const std::int64_t entry_bytes =
      cache.extent(2) * cache.extent(3) * static_cast<std::int64_t>(dtype_size(cache.dtype()));
  const std::int64_t block_bytes = cache.extent(1) * entry_bytes;
  std::byte* const bytes = cache.first_byte();
  for (std::int64_t i = 0; i < copy.num_tokens * entry_bytes; ++i) {
    bytes[copy.destination * block_bytes + i] = bytes[copy.source * block_bytes + i];
  }
}

}  // namespace

KvView kv_copy_blocks(Exec&, const KvView& view, const StepBatch& batch) {
  for (const BlockCopy& each : batch.host->block_copies) {
    copy(view.keys, each);
    copy(view.values, each);
  }
  return view;
}

}  // namespace pagoda::reference
