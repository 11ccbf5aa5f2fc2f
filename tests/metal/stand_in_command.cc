#include "tests/metal/stand_in_command.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>

namespace pagoda::mlx::stand_in {
namespace {

constexpr std::size_t kMaxThreadgroupBytes = 32768;
constexpr std::size_t kMaxThreads = 1024;
constexpr std::size_t kLanes = 32;

// Returns whether elements of `size` bytes fit a kernel's type: they have its size, or several of
// them are a vector of the kernel.
bool is_element(const emulator::BufferType& type, std::size_t size) {
  constexpr std::size_t kWord = 4;  // every vector is longer than a word
  return type.element_size == size || (type.element_size > kWord && type.element_size % size == 0);
}

std::string refusal_of_binding(const Binding& binding, const emulator::BufferType& type) {
  const std::size_t index = binding.index;
  if (binding.is_output && type.is_const)
    return fmt::format("buffer {} is bound to be written, but const", index);
  if (!binding.is_output && !type.is_const)
    return fmt::format("buffer {} is bound to be read, but not const", index);
  if (binding.is_typed && !binding.is_temporary && !is_element(type, binding.dtype.size()))
    return fmt::format("buffer {} has elements of {} bytes, the array of {}", index,
                       type.element_size, binding.dtype.size());
  if (binding.byte_offset < 0 || binding.num_bytes() < 0)
    return fmt::format("buffer {} begins at byte {} of {}", index, binding.byte_offset,
                       binding.array_bytes);
  if (binding.num_bytes() < static_cast<std::int64_t>(type.element_size))
    return fmt::format("buffer {} has {} bytes, less than an element", index, binding.num_bytes());
  if (reinterpret_cast<std::uintptr_t>(binding.begin()) % type.element_size != 0)
    return fmt::format("buffer {} is not aligned to its elements of {} bytes", index,
                       type.element_size);
  return {};
}

std::string refusal_of_bindings(const Command& command) {
  const auto& types = command.kernel->signature.buffers;
  std::vector<int> times(types.size() + 1);
  const auto count = [&](std::size_t index) {
    if (index >= times.size()) return fmt::format("index {} is not one of the kernel's", index);
    if (++times[index] > 1) return fmt::format("index {} is bound twice", index);
    return std::string();
  };
  for (const Binding& binding : command.bindings) {
    if (const std::string refusal = count(binding.index); !refusal.empty()) return refusal;
    if (binding.index == types.size())
      return fmt::format("a buffer is bound to index {} of the parameters", binding.index);
    const std::string refusal = refusal_of_binding(binding, types[binding.index]);
    if (!refusal.empty()) return refusal;
  }
  for (const BoundBytes& parameters : command.parameters) {
    if (const std::string refusal = count(parameters.index); !refusal.empty()) return refusal;
    if (parameters.index != types.size())
      return fmt::format("parameters are bound to index {}, not {}", parameters.index,
                         types.size());
    if (parameters.bytes.size() != command.kernel->signature.parameter_bytes)
      return fmt::format("{} bytes of parameters, the kernel has {}", parameters.bytes.size(),
                         command.kernel->signature.parameter_bytes);
  }
  const auto missing = std::ranges::find(times, 0);
  if (missing != times.end()) return fmt::format("index {} is not bound", missing - times.begin());
  return {};
}

std::string refusal_of_grid(const Command& command) {
  const auto [threads, y, z] = command.num_threads;
  if (y != 1 || z != 1 || threads == 0 || threads > kMaxThreads || threads % kLanes != 0)
    return fmt::format("a threadgroup of {} x {} x {} threads", threads, y, z);
  constexpr std::size_t kMost = 0x7fffffff;
  for (const std::size_t groups : command.num_groups) {
    if (groups == 0 || groups > kMost) return fmt::format("a grid of {} groups", groups);
  }
  if (command.threadgroup_bytes > kMaxThreadgroupBytes)
    return fmt::format("{} bytes of threadgroup memory", command.threadgroup_bytes);
  if ((command.threadgroup_bytes > 0) != command.kernel->signature.has_shared)
    return fmt::format("{} bytes of threadgroup memory, the kernel takes {}",
                       command.threadgroup_bytes,
                       command.kernel->signature.has_shared ? "some" : "none");
  return {};
}

bool is_float(mx::Dtype dtype) {
  return mx::issubdtype(dtype, mx::inexact);
}

// The counts of all kernels, which run on several of MLX's threads.
struct AllKernelCounts {
  std::mutex mutex;
  std::map<std::string, KernelCounts> by_name;
};

AllKernelCounts& all_kernel_counts() {
  static auto* const instance = new AllKernelCounts;  // MLX's threads outlive main()
  return *instance;
}

void add_counts(const std::string& name, const emulator::Counts& counts) {
  AllKernelCounts& all = all_kernel_counts();
  const std::lock_guard lock(all.mutex);
  KernelCounts& sum = all.by_name[name];
  sum.name = name;
  ++sum.dispatches;
  sum.buffers.resize(counts.buffers.size());
  for (std::size_t i = 0; i < counts.buffers.size(); ++i) {
    sum.buffers[i].bytes_loaded += counts.buffers[i].bytes_loaded;
    sum.buffers[i].bytes_stored += counts.buffers[i].bytes_stored;
    sum.buffers[i].lines += counts.buffers[i].lines;
    sum.buffers[i].bytes_fetched += counts.buffers[i].bytes_fetched;
  }
}

void fill_fresh_buffers(const Command& command, int of_floats, int of_integers) {
  for (const Binding& binding : command.bindings) {
    if (!binding.is_fresh) continue;
    const bool has_floats = binding.is_temporary || is_float(binding.dtype);
    std::memset(binding.begin(), has_floats ? of_floats : of_integers,
                static_cast<std::size_t>(binding.num_bytes()));
  }
}

}  // namespace

std::string refusal_of(const Command& command) {
  if (command.kernel == nullptr) return "no pipeline is set";
  std::string refusal = refusal_of_bindings(command);
  if (refusal.empty()) refusal = refusal_of_grid(command);
  return refusal.empty() ? refusal : fmt::format("{}: {}", command.kernel->name, refusal);
}

void poison_fresh_buffers(const Command& command) {
  constexpr int kNan = 0xff;  // in every byte it is a NaN of any float type
  constexpr int kOddInteger = 0xa5;
  fill_fresh_buffers(command, kNan, kOddInteger);
}

void clear_fresh_buffers(const Command& command) {
  fill_fresh_buffers(command, 0, 0);
}

void run_command(const Command& command, const emulator::Options& options) {
  emulator::Dispatch dispatch;
  dispatch.buffers.resize(command.bindings.size());
  for (const Binding& binding : command.bindings)
    dispatch.buffers[binding.index] = {
        binding.begin(), static_cast<std::size_t>(binding.num_bytes()), binding.is_fresh};
  if (!command.parameters.empty()) dispatch.parameters = command.parameters.front().bytes;
  for (std::size_t i = 0; i < command.num_groups.size(); ++i)
    dispatch.num_groups[i] = static_cast<int>(command.num_groups[i]);
  dispatch.num_threads = static_cast<int>(command.num_threads[0]);
  dispatch.threadgroup_bytes = static_cast<int>(command.threadgroup_bytes);
  const emulator::Counts counts = emulator::run_kernel(*command.kernel, dispatch, options);
  if (options.counts) add_counts(command.kernel->name, counts);
}

std::vector<KernelCounts> kernel_counts() {
  AllKernelCounts& all = all_kernel_counts();
  const std::lock_guard lock(all.mutex);
  std::vector<KernelCounts> result;
  for (const auto& [name, counts] : all.by_name) result.push_back(counts);
  return result;
}

void reset_kernel_counts() {
  AllKernelCounts& all = all_kernel_counts();
  const std::lock_guard lock(all.mutex);
  all.by_name.clear();
}

}  // namespace pagoda::mlx::stand_in
