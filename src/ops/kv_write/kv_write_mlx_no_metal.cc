// For a library that was built without Metal: nothing runs on a GPU.
#include <stdexcept>

#include "ops/kv_write/kv_write_mlx.h"

namespace pagoda::mlx {

void KvWrite::eval_gpu(const std::vector<::mlx::core::array>&, ::mlx::core::array&) {
  throw std::runtime_error("[kv_write] expected an MLX with Metal");
}

}  // namespace pagoda::mlx
