#include "backend/mlx/mlx_op.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "ops/kv_copy_blocks/kv_copy_blocks_metal.h"
#include "ops/kv_write/cache_mlx.h"
#include "ops/metal_sources.h"

namespace pagoda::mlx {
namespace {

struct Word {
  std::string_view name;
  std::int64_t bytes;
};

Word largest_word(std::int64_t entry_bytes, std::size_t element_bytes) {
  if (entry_bytes % 16 == 0) return {"uint4", 16};
  return element_bytes == 4 ? Word{"uint", 4} : Word{"ushort", 2};
}

MetalLaunch launch_of(const KvView& view, std::int64_t num_copies) {
  const std::int64_t entry_bytes = view.num_kv_heads() * view.keys.entry_bytes();
  const Word word = largest_word(entry_bytes, dtype_size(view.keys.elements.dtype()));
  const std::int64_t entry_words = entry_bytes / word.bytes;
  const std::int64_t block_words = view.block_size() * entry_words;
  return {.dispatches = {{.function = {&kKvCopyBlocksMetal, "kv_copy_blocks", {word.name}},
                          .buffers = {input(0), output(0), output(1)},
                          .parameters =
                              KvCopyBlocksParameters{
                                  .entry_words = static_cast<int>(entry_words),
                                  .block_words = static_cast<int>(block_words),
                              },
                          .num_groups = {num_groups_of(block_words, 256),
                                         static_cast<int>(num_copies), 1},
                          .num_threads = 256}},
          .bytes = 4.0 * static_cast<double>(num_copies * block_words * word.bytes)};
}

}  // namespace

KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch) {
  MlxOp op{.name = "kv_copy_blocks", .inputs = {batch.block_copies}, .outputs = {}};
  add_cache(view, op);
  if (uses_metal(exec)) {
    op.launch = launch_of(view, batch.block_copies.extent(0));
  } else {
    op.host = [](Exec& host, std::span<const Tensor> in) {
      StepBatch copies;
      copies.block_copies = in[0];
      const std::span<const Tensor> arrays = in.subspan(1);
      cpu::kv_copy_blocks(host, KvView::of(arrays), copies);
      return std::vector<Tensor>(arrays.begin(), arrays.end());
    };
  }
  return KvView::of(run(exec, std::move(op)));
}

}  // namespace pagoda::mlx
