// An emulator in which kernels of .metal files run as C++, so that they are tested where there is no
// Apple GPU.
//
// clang compiles a kernel against the headers beside this one (metal_stdlib), and register_kernel.h
// names it here. A threadgroup's threads are fibers, which run one after another up to where they
// must wait for each other. Their order, that of SIMD groups and that of threadgroups are shuffled by
// a seed. Denormals are flushed, as on the GPU.
//
// A kernel may be there in two builds. The traced one reports every access, and a run fails at
// - an access that is not aligned, or outside of what is bound, of the thread's stack and of constants,
// - a read of threadgroup memory, or of a fresh buffer, that no thread has written,
// - two threads that touch the same bytes, one of them writing, with nothing between that orders them,
// - what C++ leaves undefined: an index outside of an array, an overflow, a division by zero.
// Both fail where not all lanes of a SIMD group, or not all threads of a threadgroup, reach what they
// do together.
//
// What is not seen: bytes that clang copies as a whole struct (memcpy), and accesses that it finds to
// be superfluous. A kernel without an end hangs.
//
// Kernels run on the calling thread. Threads may run kernels at once, on other memory.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "tests/metal/emulator/signature.h"

namespace pagoda::emulator {

struct Signature {
  std::vector<BufferType> buffers;
  std::size_t parameter_bytes = 0;
  bool has_shared = false;  // takes threadgroup memory
};

struct EmulatedKernel {
  std::string name;  // of the binary
  Signature signature;
  bool is_traced = false;
  void (*call)(const ThreadArguments&) = nullptr;
};

// Returns the kernel, or null. It lives as long as the process.
const EmulatedKernel* find_kernel(std::string_view binary_name, bool traced = false);

// Memory that a dispatch reads or writes. The caller's.
struct BufferBinding {
  std::byte* data = nullptr;  // aligned for the widest type that the kernel loads from it
  std::size_t bytes = 0;
  bool is_fresh = false;  // holds nothing yet: a read ahead of a write is an error
};

struct Dispatch {
  std::vector<BufferBinding> buffers;  // as many as the signature's
  std::span<const std::byte> parameters;
  std::array<int, 3> num_groups = {1, 1, 1};
  int num_threads = 32;  // of a threadgroup, a multiple of 32, at most 1,024
  int threadgroup_bytes = 0;
};

// The order in which simd_sum adds: Metal does not say.
enum class SumOrder : std::uint8_t {
  kNeighbours,  // lanes 0 and 1, 2 and 3, and so on; then pairs of these
  kHalves,      // lanes 0 and 16, 1 and 17, and so on; then halves of these
};

// The order in which an element of a * b + c is summed: Metal does not say.
enum class MatrixOrder : std::uint8_t {
  kAscending,  // a chain of fused products from c on
  kPairs,      // products summed as a tree of pairs, then added to c
  kByPlace,    // a chain of fused products that begins at another one for each place in the 8x8
};

struct Options {
  std::uint64_t seed = 1;
  SumOrder sum_order = SumOrder::kNeighbours;
  MatrixOrder matrix_order = MatrixOrder::kAscending;
  bool counts = false;  // needs the traced build
};

// The accesses of a dispatch to a buffer. Those to memory that is bound twice count for one of the two:
// the one that is written, else the first.
struct BufferCounts {
  std::uint64_t bytes_loaded = 0;
  std::uint64_t bytes_stored = 0;
  // Lines of 128 bytes that a SIMD group's accesses touch, a line once an access of all its lanes.
  std::uint64_t lines = 0;
  // Bytes of lines that come in through a threadgroup's first-level cache of 8 KB.
  std::uint64_t bytes_fetched = 0;
};

struct Counts {
  std::vector<BufferCounts> buffers;
};

// Runs a kernel over a grid. Returns what was counted.
//
// Throws std::runtime_error where the dispatch does not fit the signature, or the run fails. It
// names the kernel, the threadgroup, the thread and what is wrong.
Counts run_kernel(const EmulatedKernel& kernel, const Dispatch& dispatch,
                  const Options& options = {});

}  // namespace pagoda::emulator
