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
  const std::int32_t* copies = batch.block_copies.data<std::int32_t>();  // [copies, 3]
  const std::int64_t num_copies = batch.block_copies.extent(0);
  const std::int64_t grain = std::max<std::int64_t>(kGrainBytes / block_bytes, 1);
  pool_of(exec).parallel_for(num_copies, grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t source = copies[3 * i], destination = copies[3 * i + 1];
      for (const Tensor* cache : {&view.keys, &view.values}) {
        std::byte* const bytes = cache->first_byte();
        std::memcpy(bytes + destination * block_bytes, bytes + source * block_bytes,
                    copies[3 * i + 2] * entry_bytes);
      }
    }
  });
  return view;
}

}  // namespace pagoda::cpu
