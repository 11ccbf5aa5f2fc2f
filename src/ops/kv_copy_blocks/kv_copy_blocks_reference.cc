#include "ops/kv_copy_blocks/kv_copy_blocks.h"

namespace pagoda::reference {
namespace {

// Copies the beginning of a block of elements [num_blocks, block_size, ...].
void copy_elements(const Tensor& elements, const BlockCopy& copy) {
  const Tensor destination = elements.slice(0, copy.destination, copy.destination + 1);
  const Tensor source = elements.slice(0, copy.source, copy.source + 1);
  const std::int64_t token_bytes = std::ssize(source.bytes()) / elements.extent(1);
  for (std::int64_t i = 0; i < copy.num_tokens * token_bytes; ++i)
    destination.bytes()[i] = source.bytes()[i];
}

// Copies the scales of the same tokens: scales [num_blocks, kv_heads, num_scales, block_size].
void copy_scales(const Tensor& scales, const BlockCopy& copy) {
  const std::int64_t block_size = scales.extent(3), runs = scales.extent(1) * scales.extent(2);
  bf16* const data = scales.data<bf16>();
  for (std::int64_t run = 0; run < runs; ++run) {
    for (std::int64_t i = 0; i < copy.num_tokens; ++i) {
      data[(copy.destination * runs + run) * block_size + i] =
          data[(copy.source * runs + run) * block_size + i];
    }
  }
}

void copy_entries(const KvEntries& entries, const BlockCopy& copy) {
  copy_elements(entries.elements, copy);
  if (entries.scales.defined()) copy_scales(entries.scales, copy);
}

}  // namespace

KvView kv_copy_blocks(Exec&, const KvView& view, const StepBatch& batch) {
  for (const BlockCopy& each : batch.host->block_copies) {
    copy_entries(view.keys, each);
    copy_entries(view.values, each);
  }
  return view;
}

}  // namespace pagoda::reference
