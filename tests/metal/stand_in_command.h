// A recorded dispatch, and the check that Metal and its kernel allow it.
#pragma once

#include <mlx/array.h>

#include <array>
#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "tests/metal/emulator/emulator.h"
#include "tests/metal/stand_in.h"
#include "tests/metal/stand_in_rules.h"

namespace pagoda::mlx::stand_in {

namespace mx = ::mlx::core;

// A buffer bound to an index.
struct Binding {
  std::size_t index = 0;
  std::shared_ptr<mx::array::Data> memory;
  std::byte* data = nullptr;     // the array's first byte
  std::int64_t array_bytes = 0;  // the array's size
  std::int64_t byte_offset = 0;  // where the buffer begins in the array
  mx::Dtype dtype = mx::uint8;   // the array's type
  bool is_output = false;
  bool is_temporary = false;
  bool is_typed = false;  // the array is an op's result, so dtype is its elements' type
  bool is_fresh = false;  // not written yet

  std::byte* begin() const { return data + byte_offset; }
  std::int64_t num_bytes() const { return array_bytes - byte_offset; }
  Use use() const {
    return {memory->buffer().ptr(), static_cast<std::size_t>(array_bytes / dtype.size()), is_output,
            is_temporary};
  }
};

struct BoundBytes {
  std::size_t index = 0;
  std::vector<std::byte> bytes;
};

struct Command {
  const emulator::EmulatedKernel* kernel = nullptr;
  std::vector<Binding> bindings;
  std::vector<BoundBytes> parameters;
  std::size_t threadgroup_bytes = 0;
  std::array<std::size_t, 3> num_groups = {};
  std::array<std::size_t, 3> num_threads = {};  // per threadgroup
  Place place;
};

// Returns in one line why the dispatch is not allowed; empty if it is.
std::string refusal_of(const Command& command);

// Fills fresh buffers with values that make reads of them visible: NaNs, or 0xA5 in integers.
void poison_fresh_buffers(const Command& command);
void clear_fresh_buffers(const Command& command);

// Runs the kernel on the emulator, and adds its counts to kernel_counts(). Throws
// std::runtime_error.
void run_command(const Command& command, const emulator::Options& options);

void reset_kernel_counts();

}  // namespace pagoda::mlx::stand_in
