// A stand-in for MLX's Metal device, so that the mlx backend's kernels run where no Apple GPU is.
//
// It defines the members of mlx::core::metal that backend/mlx/metal_dispatch.cc calls, for an
// executable whose MLX has no Metal. An op's dispatches are recorded where MLX evaluates it, on a
// CPU stream. That stream's thread runs them on the emulator (tests/metal/emulator), in an order
// drawn from what MLX's rules leave open (stand_in_rules.h).
//
// Windows. What was recorded since the last run waits, as one task of MLX's stream, until the window
// is closed: then it runs as a whole. MLX's own operations on the stream keep their place before or
// behind it. A window closes
// - when it is full;
// - by close_window(), which a thread that waits for a result calls first;
// - before a dispatch that names an array that MLX itself computes behind it;
// - after each dispatch of a blocking evaluation (mlx::core::eval), which waits without a word;
// - when MLX's evaluation stands still until tasks finish, or nothing was recorded for a while. The
//   latter is counted, as the order of a run then hangs on the clock.
//
// Errors. A dispatch that Metal or a kernel's signature would not take is refused: the evaluation
// throws a std::runtime_error of one line. A kernel's own error is thrown by the stream's task. MLX
// hands it to the thread that waits for the result, synchronizes, or evaluates next.
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
  std::uint64_t seed = 1;        // of the orders drawn
  bool is_shuffled = true;       // else the order of recording, which is one that the rules allow
  bool is_traced = false;        // kernels run in their traced builds, where there are any
  bool skips_kernels = false;    // no kernel runs, no window is opened, and results are zeros
  emulator::Options emulator;    // but for its seed
};

// Returns the options that the environment asks for: PAGODA_METAL_SEED, PAGODA_METAL_ENCODER (the
// dispatches of an encoder), PAGODA_METAL_TRACED (1: the traced builds), PAGODA_METAL_MATRIX and
// PAGODA_METAL_SUM (orders of emulator.h), MLX_MAX_OPS_PER_BUFFER, MLX_MAX_MB_PER_BUFFER. Prints them.
Options options_of_environment();

// Starts anew with these options, on all threads from their next launch on: with a first encoder, and
// the first order of the seed. Closes what is open. Until then it is options_of_environment().
void configure(const Options& options);

// Closes the open windows of all threads, and ends the calling thread's encoders, as MLX does at an
// evaluation's end. Does not wait.
void close_window();

// The counters of the process.
struct Counts : EncoderCounts {
  std::uint64_t launches = 0;  // of ops
  std::uint64_t results = 0;   // arrays that they made
  std::uint64_t dispatches = 0;
  std::uint64_t windows = 0;
  std::uint64_t idle_closes = 0;     // windows closed by the clock
  std::uint64_t foreign_inputs = 0;  // arrays named that MLX's own operations compute
  std::uint64_t foreign_bytes = 0;   // of those: what MLX copies, if anything
  std::uint64_t bound_bytes = 0;     // of all buffers of all dispatches
  std::uint64_t libraries = 0;       // texts handed to the compiler
};

// Sums of what all dispatches of a kernel asked of memory.
struct KernelCounts {
  std::string name;  // of the binary
  std::uint64_t dispatches = 0;
  std::vector<emulator::BufferCounts> buffers;  // by index
};

Counts counts();
// Returns what kernels that have run since reset_counts() asked for, by name; of those alone that
// ran with Options::emulator.counts, which needs traced builds.
std::vector<KernelCounts> kernel_counts();
void reset_counts();

}  // namespace pagoda::mlx::stand_in
