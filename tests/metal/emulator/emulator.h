// An emulator that runs kernels of .metal files as C++, so that tests need no Apple GPU.
//
// clang compiles a kernel against the headers beside this one (metal_stdlib), and register_kernel.h
// registers it here. A threadgroup's threads are fibers. Each runs until it must wait for other
// threads; then another one runs. A seed shuffles the order of threads, SIMD groups and
// threadgroups. Denormals are flushed, as on the GPU.
//
// A kernel may have two builds. The traced build reports every access, and a run fails at
// - an access that is not aligned, or outside of bound memory, the thread's stack and constants,
// - a read of threadgroup memory, or of a fresh buffer, that no thread has written,
// - accesses of two threads to the same bytes, at least one of them a write, without an order,
// - undefined behavior of C++: an index outside of an array, an overflow, a division by zero.
// Both builds fail if some lanes of a SIMD group, or some threads of a threadgroup, miss a call
// that all must make together.
//
// The emulator does not see bytes that clang copies as a whole struct (memcpy), and accesses that
// clang removes. A kernel that does not end hangs.
//
// Kernels run on the calling thread. Several threads may run kernels at a time, on separate memory.
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
  std::string name;  // name of the binary
  Signature signature;
  bool is_traced = false;
  void (*call)(const ThreadArguments&) = nullptr;
};

// Returns the kernel, or null. It lives as long as the process.
const EmulatedKernel* find_kernel(std::string_view binary_name, bool traced = false);

// Memory that a dispatch reads or writes. The caller owns it.
struct BufferBinding {
  std::byte* data = nullptr;  // aligned for the widest type that the kernel loads from it
  std::size_t bytes = 0;
  bool is_fresh = false;  // uninitialised: a read before a write is an error
};

struct Dispatch {
  std::vector<BufferBinding> buffers;  // one per buffer of the signature
  std::span<const std::byte> parameters;
  std::array<int, 3> num_groups = {1, 1, 1};
  int num_threads = 32;  // per threadgroup; a multiple of 32, at most 1,024
  int threadgroup_bytes = 0;
};

// The order in which simd_sum adds, which Metal does not specify.
enum class SumOrder : std::uint8_t {
  kNeighbours,  // lanes 0 and 1, 2 and 3, and so on; then pairs of these
  kHalves,      // lanes 0 and 16, 1 and 17, and so on; then halves of these
};

// The order in which an element of a * b + c is summed, which Metal does not specify.
enum class MatrixOrder : std::uint8_t {
  kAscending,  // a chain of fused products that starts with c, in ascending order
  kPairs,      // products summed as a tree of pairs, then added to c
  kByPlace,    // a chain of fused products; which product is first depends on the element's place
};

struct Options {
  std::uint64_t seed = 1;
  SumOrder sum_order = SumOrder::kNeighbours;
  MatrixOrder matrix_order = MatrixOrder::kAscending;
  bool counts = false;  // needs the traced build
};

// The accesses of a dispatch to a buffer. If memory is bound twice, its accesses count for one of
// the two buffers: the one that the kernel writes, else the first.
struct BufferCounts {
  std::uint64_t bytes_loaded = 0;
  std::uint64_t bytes_stored = 0;
  // Lines of 128 bytes that accesses touch. A line counts once per joint access of a SIMD group.
  std::uint64_t lines = 0;
  // Bytes of lines that a first-level cache of 8 KB per threadgroup fetches.
  std::uint64_t bytes_fetched = 0;
};

struct Counts {
  std::vector<BufferCounts> buffers;
};

// Runs a kernel over a grid. Returns the counts.
//
// Throws std::runtime_error if the dispatch does not fit the signature, or the run fails. The
// message names the kernel, the threadgroup, the thread and the error.
Counts run_kernel(const EmulatedKernel& kernel, const Dispatch& dispatch,
                  const Options& options = {});

}  // namespace pagoda::emulator
