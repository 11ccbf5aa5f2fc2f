#include "ops/kv_copy_blocks/kv_copy_blocks.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {
namespace {

// Bytes of keys worth a fork: below, a copy takes less time than waking the workers.
constexpr std::int64_t kGrainBytes = 65536;

}  // namespace

KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch) {
  const std::int64_t entry_bytes = view.num_kv_heads() * view.head_dim() *
                                   static_cast<std::int64_t>(dtype_size(view.keys.dtype()));
  const std::int64_t block_bytes = view.block_size() * entry_bytes;
  const std::vector<BlockCopy>& copies = batch.host->block_copies;
  const auto num_copies = static_cast<std::int64_t>(copies.size());
  const std::int64_t grain = std::max<std::int64_t>(kGrainBytes / block_bytes, 1);
  pool_of(exec).parallel_for(num_copies, grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const BlockCopy& copy = copies[i];
      for (const Tensor* cache : {&view.keys, &view.values}) {
        std::byte* const bytes = cache->first_byte();
        std::memcpy(bytes + copy.destination * block_bytes, bytes + copy.source * block_bytes,
                    copy.num_tokens * entry_bytes);
      }
    }
  });
  return view;
}

}  // namespace pagoda::cpu
