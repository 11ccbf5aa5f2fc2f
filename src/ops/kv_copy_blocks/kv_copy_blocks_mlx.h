// The MLX primitive that copies within a cache and returns the same memory as a new array.
//
// As KvWrite (ops/kv_write/kv_write_mlx.h), whose reasons why nobody sees the old array change hold
// here too: the sources are entries written in earlier steps, the destinations are blocks that
// nobody reads yet.
#pragma once

#include <mlx/primitives.h>

namespace pagoda::mlx {

// Inputs: cache [num_blocks, block_size, num_kv_heads, head_dim]; copies [n, 3] int32: source,
// destination, tokens. Output: the cache.
class KvCopyBlocks final : public ::mlx::core::UnaryPrimitive {
 public:
  explicit KvCopyBlocks(::mlx::core::Stream stream) : UnaryPrimitive(stream) {}

  void eval_cpu(const std::vector<::mlx::core::array>& inputs, ::mlx::core::array& output) override;
  void eval_gpu(const std::vector<::mlx::core::array>& inputs, ::mlx::core::array& output) override;
  const char* name() const override { return "PagodaKvCopyBlocks"; }
};

}  // namespace pagoda::mlx
