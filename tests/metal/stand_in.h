// A stand-in for MLX's Metal device, so that the mlx backend's kernels run without an Apple GPU.
//
// It defines the members of mlx::core::metal that backend/mlx/metal_dispatch.cc calls, for an
// executable whose MLX has no Metal. An op's dispatches are recorded when MLX evaluates the op on a
// CPU stream. That stream's thread runs them on the emulator (tests/metal/emulator), in a random
// order among those that MLX's rules allow (stand_in_rules.h).
//
// Windows. Dispatches are recorded in a window, which is one task of MLX's stream. The task waits
// until the window is closed, and then runs all its dispatches. MLX's own operations on the stream
// stay before or after the window. A window closes
// - when it is full;
// - by close_window(), which a thread calls before it waits for a result;
// - before a dispatch that names an array that MLX itself computes after the window began;
// - after each dispatch of a blocking evaluation (mlx::core::eval), which waits without calling us;
// - when MLX's evaluation waits for tasks to finish, or nothing was recorded for a while. The
//   latter is counted, because the order of a run then depends on the clock.
//
// Errors. A dispatch that Metal or a kernel's signature does not allow is refused: the evaluation
// throws a std::runtime_error of one line. A kernel's own error is thrown by the stream's task. MLX
// passes it to the thread that waits for the result, synchronizes, or evaluates next.
//
// Fresh memory of outputs and of scratch is filled with NaNs, or with 0xA5 in integers.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "tests/metal/emulator/emulator.h"
#include "tests/metal/stand_in_rules.h"

namespace pagoda::mlx::stand_in {

struct Options {
  EncoderLimits limits;
  std::size_t window_size = 48;  // dispatches; MLX stops after about 100 operations in flight
  std::uint64_t seed = 1;        // of the random orders
  bool is_shuffled = true;       // false: the order of recording, which the rules allow
  bool is_traced = false;        // run the kernels' traced builds, if there are any
  bool skips_kernels = false;    // no kernel runs, no window is opened, and results are zeros
  emulator::Options emulator;    // its seed is ignored
};

// Returns and prints the options that the environment sets: PAGODA_METAL_SEED, PAGODA_METAL_ENCODER
// (dispatches per encoder), PAGODA_METAL_TRACED (1: traced builds), PAGODA_METAL_MATRIX and
// PAGODA_METAL_SUM (orders of emulator.h), MLX_MAX_OPS_PER_BUFFER, MLX_MAX_MB_PER_BUFFER.
Options options_of_environment();

// Restarts with these options: each thread begins a first encoder, and the seed's first order, at
// its next launch. Closes open windows. Before the first call the options are
// options_of_environment().
void configure(const Options& options);

// Closes the open windows of all threads, and ends the calling thread's encoders, as MLX does at an
// evaluation's end. Does not wait.
void close_window();

// The counters of the process.
struct Counts : EncoderCounts {
  std::uint64_t launches = 0;  // launches of ops
  std::uint64_t results = 0;   // arrays that the launches made
  std::uint64_t dispatches = 0;
  std::uint64_t windows = 0;
  std::uint64_t idle_closes = 0;     // windows closed by the clock
  std::uint64_t foreign_inputs = 0;  // inputs that MLX's own operations compute
  std::uint64_t foreign_bytes = 0;   // bytes of those inputs: they show copies that MLX makes
  std::uint64_t bound_bytes = 0;     // sum over all buffers of all dispatches
  std::uint64_t libraries = 0;       // texts given to the compiler
};

// Sums of the memory accesses of all dispatches of a kernel.
struct KernelCounts {
  std::string name;  // name of the binary
  std::uint64_t dispatches = 0;
  std::vector<emulator::BufferCounts> buffers;  // by index
};

Counts counts();
// Returns the accesses of the kernels that have run since reset_counts(), sorted by name. Only runs
// with Options::emulator.counts are counted, which needs traced builds.
std::vector<KernelCounts> kernel_counts();
void reset_counts();

}  // namespace pagoda::mlx::stand_in
