// Limits that an Apple GPU is told before it computes, and what it says of itself.
#pragma once

#include <cstdint>
#include <string>

namespace pagoda::mlx {

// Bounds of a command buffer, in MLX's counts: operations, and megabytes of inputs.
inline constexpr int kMaxOps = 1000;
inline constexpr int kMaxMegabytes = 1000000;

// Sets MLX's limits, before anything of ours touches the device:
// - A command buffer ends where MLX counts so many operations or so many megabytes of inputs, 40 and
//   40 by default. A step of ours has a few hundred operations, and each that names a cache counts
//   the whole pool. Both are raised so that a step is one command buffer or two; what bounds how
//   long one runs is MlxExec::is_due(). MLX_MAX_OPS_PER_BUFFER and MLX_MAX_MB_PER_BUFFER that the
//   user has set stay.
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
