// A kernel as its registration describes it. Includes no header that defines functions: they would
// be traced, too.
#pragma once

#include <cstddef>
#include <cstdint>

namespace pagoda::emulator {

// A buffer's type in a kernel's signature.
struct BufferType {
  bool is_const = false;
  std::size_t element_size = 0;
};

// The arguments with which a thread runs a kernel.
struct ThreadArguments {
  std::byte* const* buffers = nullptr;
  const std::byte* parameters = nullptr;
  std::byte* shared = nullptr;
  std::uint32_t group[3] = {};
  std::uint32_t thread = 0;
  std::uint32_t simd_group = 0;
  std::uint32_t lane = 0;
};

struct KernelDescription {
  const char* name;       // the function's name
  const char* arguments;  // its template arguments: "bfloat, 128"
  const BufferType* buffers;
  std::size_t num_buffers;
  std::size_t parameter_bytes;
  bool has_shared;  // takes threadgroup memory
  bool is_traced;
  void (*call)(const ThreadArguments&);
};

// Adds a kernel to those that find_kernel() finds. A second kernel of the same name ends the
// process.
void register_kernel(const KernelDescription& description);

}  // namespace pagoda::emulator
