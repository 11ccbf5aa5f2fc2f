// For a library that was built without Metal: nothing runs on a GPU.
#include <stdexcept>

#include "ops/kv_copy_blocks/kv_copy_blocks_mlx.h"

namespace pagoda::mlx {

void KvCopyBlocks::eval_gpu(const std::vector<::mlx::core::array>&, ::mlx::core::array&) {
  throw std::runtime_error("[kv_copy_blocks] expected an MLX with Metal");
}

}  // namespace pagoda::mlx
