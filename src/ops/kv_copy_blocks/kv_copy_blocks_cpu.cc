#include "ops/kv_copy_blocks/kv_copy_blocks.h"

#include <algorithm>
#include <cstring>

#include "backend/cpu/cpu_exec.h"

namespace pagoda::cpu {
namespace {

// The fewest bytes of keys worth a fork: fewer are copied in less time than waking workers takes.
constexpr std::int64_t kGrainBytes = 65536;

// Copies the first `num_tokens` of each run of a block. Extent 0 of the array is blocks, and a
// block has `runs` runs of `block_size` tokens.
void copy_tokens(const Tensor& array, std::int64_t runs, std::int64_t source,
                 std::int64_t destination, std::int64_t num_tokens, std::int64_t block_size) {
  const std::int64_t block_bytes =
      array.stride(0) * static_cast<std::int64_t>(dtype_size(array.dtype()));
  const std::int64_t run_bytes = block_bytes / runs, token_bytes = run_bytes / block_size;
  std::byte* const bytes = array.first_byte();
  for (std::int64_t run = 0; run < runs; ++run) {
    std::memcpy(bytes + destination * block_bytes + run * run_bytes,
                bytes + source * block_bytes + run * run_bytes, num_tokens * token_bytes);
  }
}

}  // namespace

KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch) {
  const std::int64_t block_size = view.block_size();
  const std::int64_t block_bytes = block_size * view.num_kv_heads() * view.keys.entry_bytes();
  const std::int32_t* copies = batch.block_copies.data<std::int32_t>();  // [copies, 3]
  const std::int64_t num_copies = batch.block_copies.extent(0);
  const std::int64_t grain = std::max<std::int64_t>(kGrainBytes / block_bytes, 1);
  pool_of(exec).parallel_for(num_copies, grain, [&](std::int64_t begin, std::int64_t end, int) {
    for (std::int64_t i = begin; i < end; ++i) {
      const std::int64_t source = copies[3 * i], destination = copies[3 * i + 1];
      const std::int64_t num_tokens = copies[3 * i + 2];
      for (const KvEntries* entries : {&view.keys, &view.values}) {
        copy_tokens(entries->elements, 1, source, destination, num_tokens, block_size);
        const Tensor& scales = entries->scales;
        if (!scales.defined()) continue;
        copy_tokens(scales, scales.extent(1) * scales.extent(2), source, destination, num_tokens,
                    block_size);
      }
    }
  });
  return view;
}

}  // namespace pagoda::cpu
