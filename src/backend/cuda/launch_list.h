// LaunchList: what an evaluation gives to the stream, in order. Steps that decode the same sequences
// have equal lists, which a graph launches by one call.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <variant>
#include <vector>

#include "backend/cuda/device.h"
#include "core/status.h"

namespace pagoda::cuda {

class LaunchList {
 public:
  // A launch of a kernel, without its argument.
  struct Kernel {
    CuFunction* function = nullptr;
    std::array<unsigned, 3> num_groups = {};
    unsigned num_threads = 0;
    unsigned shared_bytes = 0;

    bool operator==(const Kernel&) const = default;
  };

  bool empty() const { return work_.empty(); }
  void clear();
  // Adds a launch, and returns `argument_bytes` zeros for the kernel's argument.
  std::byte* add(const Kernel& kernel, std::size_t argument_bytes);
  // Adds a copy to the GPU. `from` is pinned. If `to_persistent` is true, no graph may hold the copy:
  // the driver looks its memory up when the graph is made, and persistent memory may be released.
  void add_copy(Address to, const std::byte* from, std::size_t bytes, bool to_persistent);

  // Returns whether a graph may hold the list.
  bool fits_a_graph() const { return fits_a_graph_; }
  // Gives all work to the stream.
  Status submit(const Driver& driver, CuStream* stream) const;
  // Returns a number that is equal for equal lists.
  std::uint64_t hash() const;

  bool operator==(const LaunchList&) const = default;

 private:
  struct Launch {
    Kernel kernel;
    std::size_t argument = 0;  // where it begins in arguments_

    bool operator==(const Launch&) const = default;
  };
  struct Copy {
    Address to = 0;
    const std::byte* from = nullptr;
    std::size_t bytes = 0;

    bool operator==(const Copy&) const = default;
  };

  std::vector<std::variant<Launch, Copy>> work_;
  std::vector<std::byte> arguments_;
  bool fits_a_graph_ = true;
};

}  // namespace pagoda::cuda
