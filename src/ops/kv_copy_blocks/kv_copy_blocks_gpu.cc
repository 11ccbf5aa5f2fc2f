#include "backend/gpu/gpu_op.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "ops/kv_copy_blocks/kv_copy_blocks_metal.h"
#include "ops/kv_write/cache_gpu.h"
#include "ops/metal_sources.h"

namespace pagoda::gpu {
namespace {

struct Word {
  std::string_view name;
  std::int64_t bytes;
};

Word largest_word(std::int64_t token_bytes, std::size_t element_bytes) {
  if (token_bytes % 16 == 0) return {"uint4", 16};
  if (element_bytes == 4) return {"uint", 4};
  return element_bytes == 2 ? Word{"ushort", 2} : Word{"uchar", 1};
}

// Returns the dispatch that copies blocks of one array, whose runs have `block_size` tokens of
// `token_bytes` each.
GpuDispatch dispatch_of(const Tensor& array, int index, std::int64_t block_size,
                        std::int64_t token_bytes, std::int64_t num_copies) {
  const Word word = largest_word(token_bytes, dtype_size(array.dtype()));
  const std::int64_t bytes =
      array.num_elements() * static_cast<std::int64_t>(dtype_size(array.dtype()));
  const std::int64_t block_words = bytes / array.extent(0) / word.bytes;
  const std::int64_t token_words = token_bytes / word.bytes;
  return {.function = {&kKvCopyBlocksMetal, "kv_copy_blocks", {word.name}},
          .buffers = {input(0), output(index)},
          .parameters =
              KvCopyBlocksParameters{
                  .token_words = static_cast<int>(token_words),
                  .run_words = static_cast<int>(block_size * token_words),
                  .block_words = static_cast<int>(block_words),
              },
          .num_groups = {num_groups_of(block_words, 256), static_cast<int>(num_copies), 1},
          .num_threads = 256};
}

GpuLaunch launch_of(const KvView& view, std::int64_t num_copies) {
  GpuLaunch launch;
  for (const KvEntries* entries : {&view.keys, &view.values}) {
    const auto add = [&](const Tensor& array, std::int64_t token_bytes) {
      launch.dispatches.push_back(dispatch_of(array, static_cast<int>(launch.dispatches.size()),
                                              view.block_size(), token_bytes, num_copies));
    };
    add(entries->elements, view.num_kv_heads() * entries->entry_bytes());
    if (entries->scales.defined()) add(entries->scales, sizeof(bf16));
  }
  launch.bytes = 2 * static_cast<double>(num_copies * view.block_size() * view.bytes_per_token());
  return launch;
}

}  // namespace

KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch) {
  GpuOp op{.name = "kv_copy_blocks", .inputs = {batch.block_copies}, .outputs = {}};
  add_cache(view, op);
  if (uses_kernels(exec)) {
    op.launch = launch_of(view, batch.block_copies.extent(0));
  } else {
    op.host = [formats = view.formats()](Exec& host, std::span<const Tensor> in) {
      StepBatch copies;
      copies.block_copies = in[0];
      const std::span<const Tensor> arrays = in.subspan(1);
      cpu::kv_copy_blocks(host, KvView::of(formats, arrays), copies);
      return std::vector<Tensor>(arrays.begin(), arrays.end());
    };
  }
  return KvView::of(view.formats(), run(exec, std::move(op)));
}

}  // namespace pagoda::gpu
