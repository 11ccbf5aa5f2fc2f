#include <mlx/backend/cpu/encoder.h>

#include <cstring>
#include <stdexcept>

#include "backend/mlx/mlx_exec.h"
#include "ops/kv_copy_blocks/kv_copy_blocks.h"
#include "ops/kv_copy_blocks/kv_copy_blocks_mlx.h"

namespace pagoda::mlx {
namespace {

struct Copies {
  char* cache;
  const std::int32_t* copies;  // [num_copies, 3]
  std::int64_t num_copies;
  std::size_t entry_bytes;
  std::size_t block_bytes;
};

void copy_all(const Copies& all) {
  for (std::int64_t i = 0; i < all.num_copies; ++i) {
    const std::int32_t* const copy = all.copies + 3 * i;
    std::memcpy(all.cache + copy[1] * all.block_bytes, all.cache + copy[0] * all.block_bytes,
                copy[2] * all.entry_bytes);
  }
}

}  // namespace

void KvCopyBlocks::eval_cpu(const std::vector<mx::array>& inputs, mx::array& output) {
  const mx::array& cache = inputs[0];
  const mx::array& copies = inputs[1];
  if (!cache.flags().row_contiguous || !copies.flags().row_contiguous)
    throw std::invalid_argument("[kv_copy_blocks] expected contiguous arrays");
  output.copy_shared_buffer(cache);
  const std::size_t entry_bytes =
      static_cast<std::size_t>(cache.shape(2)) * cache.shape(3) * cache.itemsize();
  const Copies all{.cache = output.data<char>(),
                   .copies = copies.data<std::int32_t>(),
                   .num_copies = copies.shape(0),
                   .entry_bytes = entry_bytes,
                   .block_bytes = entry_bytes * cache.shape(1)};
  auto& encoder = mx::cpu::get_command_encoder(stream());
  encoder.set_input_array(copies);
  encoder.set_output_array(output);
  encoder.dispatch([all] { copy_all(all); });
}

KvView kv_copy_blocks(Exec& exec, const KvView& view, const StepBatch& batch) {
  const auto copied = [&](const Tensor& cache) {
    return mlx_exec(exec).build("kv_copy_blocks", cache.dtype(), cache.shape(), [&] {
      auto primitive = std::make_shared<KvCopyBlocks>(mx::default_stream(mx::default_device()));
      return mx::array(to_mlx(cache.shape()), to_mlx(cache.dtype()), std::move(primitive),
                       {array_of(cache), array_of(batch.block_copies)});
    });
  };
  return {.keys = copied(view.keys), .values = copied(view.values)};
}

}  // namespace pagoda::mlx
