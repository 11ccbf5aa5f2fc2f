// Limits that are set for an Apple GPU before it computes, and the GPU's own properties.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda::mlx {

// Bounds of a command buffer, in MLX's counts: operations, and megabytes of inputs.
inline constexpr int kMaxOps = 1000;
inline constexpr int kMaxMegabytes = 1000000;

// Sets MLX's limits, before anything of ours touches the device:
// - MLX ends a command buffer after a number of operations or of megabytes of inputs, 40 and 40 by
//   default. Our steps have a few hundred operations, and each operation on the KV cache counts the
//   whole block pool. Both limits are raised so that a step has one or two command buffers;
//   MlxExec::is_due() bounds how long one runs. If the user has set MLX_MAX_OPS_PER_BUFFER or
//   MLX_MAX_MB_PER_BUFFER, the user's value is kept.
// - Memory up to the recommended working set is wired, so that weights are not paged out between
//   requests.
// - Freed results are kept for reuse up to a bound, not up to all of the machine's memory.
// Throws what MLX throws.
void prepare_gpu();

// Returns the bytes that the system recommends a process to use on the GPU, less what is in use.
std::int64_t available_gpu_bytes();

// Returns a line: the GPU's name and its memory.
std::string describe_gpu();

}  // namespace pagoda::mlx
