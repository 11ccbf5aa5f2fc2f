// A dispatch as it is recorded, and what Metal or its kernel would not take.
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
  std::byte* data = nullptr;     // of the array
  std::int64_t array_bytes = 0;  // from there
  std::int64_t byte_offset = 0;  // of the buffer in the array
  mx::Dtype dtype = mx::uint8;   // of the array
  bool is_output = false;
  bool is_temporary = false;
  bool is_typed = false;  // the array is an op's result, so its type is the elements'
  bool is_fresh = false;  // nothing has written it

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
  std::array<std::size_t, 3> num_threads = {};  // of a threadgroup
  Place place;
};

// Returns why the dispatch can't be, in a line; empty if it can.
std::string refusal_of(const Command& command);

// Fills fresh buffers with values that show where they are read: NaNs, or 0xA5 in integers.
void poison_fresh_buffers(const Command& command);
void clear_fresh_buffers(const Command& command);

// Runs the kernel on the emulator, and adds up what it counts. Throws std::runtime_error.
void run_command(const Command& command, const emulator::Options& options);

void reset_kernel_counts();

}  // namespace pagoda::mlx::stand_in
