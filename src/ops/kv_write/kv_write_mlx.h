// The MLX primitive that stores rows in a cache and returns the same memory as a new array.
//
// MLX's arrays are values: an update is a copy, or at best a donated buffer. This primitive's
// output shares its first input's buffer instead, so that a cache stays where it is, whatever the
// step, and costs its tokens alone.
//
// Why nobody sees the old array change:
// - A write comes before the reads of its step: attention reads the returned array, which is the
//   graph's edge from the write. The store keeps only the returned array (rebind), so that the next
//   write hangs on this one, too.
// - Reads of an earlier step come before this write. A step is evaluated as a whole before the next
//   one is: MLX orders a graph by its edges alone, so two steps must not be built and then
//   evaluated at once. On a CPU stream work runs in the order in which it was handed over, which
//   settles it, with any number of steps in flight. On Metal a kernel is kept behind earlier ones of
//   its own command encoder that read the buffer, and behind encoders that wrote it, but not behind
//   earlier encoders that only read it. There it is the owner of the blocks that makes it right: an
//   entry is written once, and a block changes hands only after the host has seen the end of the
//   last step that it waits for, so that a write in flight and an older read in flight never touch
//   the same entry.
// - The memory is never lent to another result: MlxExec::allocate_persistent gives it a deleter of
//   its own, and MLX donates only buffers without one.
#pragma once

#include <mlx/primitives.h>

namespace pagoda::mlx {

// Inputs: cache [num_blocks, block_size, num_kv_heads, head_dim]; rows [tokens, num_kv_heads,
// head_dim] of the same type, row contiguous; slots [tokens] int32, negative ones skipped. Output:
// the cache.
class KvWrite final : public ::mlx::core::UnaryPrimitive {
 public:
  explicit KvWrite(::mlx::core::Stream stream) : UnaryPrimitive(stream) {}

  void eval_cpu(const std::vector<::mlx::core::array>& inputs, ::mlx::core::array& output) override;
  void eval_gpu(const std::vector<::mlx::core::array>& inputs, ::mlx::core::array& output) override;
  const char* name() const override { return "PagodaKvWrite"; }
};

// `cache` with rows[t] at slot slots[t]; all three as above.
::mlx::core::array write_in_place(const ::mlx::core::array& cache, const ::mlx::core::array& rows,
                                  const ::mlx::core::array& slots);

}  // namespace pagoda::mlx
