#include "backend/mlx/metal_dispatch.h"

#include <mlx/allocator.h>
#include <mlx/backend/metal/device.h>
#include <mlx/backend/metal/metal.h>

#include <atomic>
#include <shared_mutex>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

namespace pagoda::mlx {
namespace {

using gpu::GpuDispatch;
using gpu::GpuFunction;
using gpu::GpuLaunch;
using gpu::GpuOperand;
using gpu::GpuParameters;
using gpu::GpuSource;

namespace mx = ::mlx::core;

constexpr std::size_t kThreadgroupUnit = 16;  // bytes; Metal requires lengths to be multiples of it

// The pipelines of this process. MLX looks one up by two strings, under two locks. A step has
// hundreds of dispatches, so this class looks a function up without building a string for it.
class Pipelines {
 public:
  // Returns the function's pipeline, or null if it was never built.
  MTL::ComputePipelineState* find(const GpuFunction& function) const {
    const std::shared_lock lock(mutex_);
    const auto found = pipelines_.find(function);
    return found == pipelines_.end() ? nullptr : found->second;
  }

  MTL::ComputePipelineState* build(const GpuFunction& function) {
    Key key{function.source, function.binary_name()};
    mx::metal::Device& device = mx::metal::device(mx::Device::gpu);
    const mx::CompileOptions ieee(static_cast<int>(mx::MathMode::Safe));
    MTL::Library* const library =
        device.get_library(key.binary_name, ieee, [&] { return function.text(); });
    MTL::ComputePipelineState* const pipeline = device.get_kernel(key.binary_name, library);
    const std::unique_lock lock(mutex_);
    pipelines_.emplace(std::move(key), pipeline);
    return pipeline;
  }

 private:
  struct Key {
    const GpuSource* source;
    std::string binary_name;
  };

  // Gives a function the same hash as its binary name has (FNV-1a).
  struct Hash {
    using is_transparent = void;  // NOLINT(readability-identifier-naming)
    static std::size_t add(std::uint64_t hash, std::string_view text) {
      for (const char c : text) hash = (hash ^ static_cast<unsigned char>(c)) * 0x100000001b3;
      return hash;
    }
    std::size_t operator()(const Key& key) const { return add(kBasis, key.binary_name); }
    std::size_t operator()(const GpuFunction& function) const {
      std::uint64_t hash = add(kBasis, function.name);
      for (const std::string_view argument : function.arguments)
        hash = add(add(hash, "_"), argument);
      return hash;
    }
    static constexpr std::uint64_t kBasis = 0xcbf29ce484222325;
  };

  struct Equal {
    using is_transparent = void;  // NOLINT(readability-identifier-naming)
    bool operator()(const Key& a, const Key& b) const {
      return a.source == b.source && a.binary_name == b.binary_name;
    }
    bool operator()(const GpuFunction& function, const Key& key) const {
      std::string_view rest = key.binary_name;
      const auto take = [&rest](std::string_view text) {
        const bool matches = rest.starts_with(text);
        if (matches) rest.remove_prefix(text.size());
        return matches;
      };
      if (function.source != key.source || !take(function.name)) return false;
      for (const std::string_view argument : function.arguments) {
        if (!take("_") || !take(argument)) return false;
      }
      return rest.empty();
    }
    bool operator()(const Key& key, const GpuFunction& function) const {
      return (*this)(function, key);
    }
  };

  mutable std::shared_mutex mutex_;
  std::unordered_map<Key, MTL::ComputePipelineState*, Hash, Equal> pipelines_;
};

Pipelines& pipelines() {
  static auto* const instance = new Pipelines;  // outlives the last command, like MLX's device
  return *instance;
}

std::atomic<std::uint64_t> late_pipelines = 0;

MTL::ComputePipelineState* pipeline_of(const GpuFunction& function) {
  if (MTL::ComputePipelineState* const built = pipelines().find(function)) return built;
  late_pipelines.fetch_add(1, std::memory_order_relaxed);
  return pipelines().build(function);
}

mx::array allocate_scratch(std::size_t bytes) {
  const std::size_t words = bytes / sizeof(std::uint32_t) + 1;
  return mx::array(mx::allocator::malloc(words * sizeof(std::uint32_t)),
                   {static_cast<mx::ShapeElem>(words)}, mx::uint32);
}

// A launch that is being encoded.
class Encoding {
 public:
  Encoding(mx::metal::CommandEncoder& encoder, const GpuLaunch& launch,
           std::span<const MetalInput> inputs, std::span<mx::array> outputs)
      : encoder_(encoder), inputs_(inputs), outputs_(outputs) {
    for (const std::size_t bytes : launch.scratch_bytes) {
      scratch_.push_back(allocate_scratch(bytes));
      encoder_.add_temporary(scratch_.back());
    }
    is_written_.resize(scratch_.size());
  }

  void add(const GpuDispatch& dispatch) {
    encoder_.set_compute_pipeline_state(pipeline_of(dispatch.function));
    int index = 0;
    for (const GpuOperand operand : dispatch.buffers) bind(operand, index++);
    const GpuParameters& parameters = dispatch.parameters;
    if (parameters.size() > 0)
      encoder_.set_bytes(parameters.data(), static_cast<int>(parameters.size()), index);
    if (dispatch.threadgroup_bytes > 0) {
      const auto bytes = static_cast<std::size_t>(dispatch.threadgroup_bytes);
      encoder_.set_threadgroup_memory_length(
          (bytes + kThreadgroupUnit - 1) / kThreadgroupUnit * kThreadgroupUnit, 0);
    }
    const auto [x, y, z] = dispatch.num_groups;
    encoder_.dispatch_threadgroups(MTL::Size(x, y, z), MTL::Size(dispatch.num_threads, 1, 1));
    for (const GpuOperand operand : dispatch.buffers) {
      if (operand.kind == GpuOperand::Kind::kScratch) is_written_[operand.index] = true;
    }
  }

 private:
  void bind(GpuOperand operand, int index) {
    switch (operand.kind) {
      case GpuOperand::Kind::kInput: {
        const MetalInput& input = inputs_[operand.index];
        encoder_.set_input_array(*input.array, index, input.byte_offset);
        break;
      }
      case GpuOperand::Kind::kOutput:
        encoder_.set_output_array(outputs_[operand.index], index);
        break;
      case GpuOperand::Kind::kScratch:
        if (is_written_[operand.index]) {
          encoder_.set_input_array(scratch_[operand.index], index);
        } else {
          encoder_.set_output_array(scratch_[operand.index], index);
        }
        break;
    }
  }

  mx::metal::CommandEncoder& encoder_;
  std::span<const MetalInput> inputs_;
  std::span<mx::array> outputs_;
  std::vector<mx::array> scratch_;
  std::vector<bool> is_written_;  // scratch that an earlier dispatch has written
};

}  // namespace

bool metal_is_available() {
  return mx::metal::is_available();
}

void build_pipeline(const GpuFunction& function) {
  if (pipelines().find(function) == nullptr) pipelines().build(function);
}

std::uint64_t num_late_pipelines() {
  return late_pipelines.load(std::memory_order_relaxed);
}

void dispatch_launch(mx::Stream stream, const GpuLaunch& launch, std::span<const MetalInput> inputs,
                     std::span<mx::array> outputs) {
  Encoding encoding(mx::metal::get_command_encoder(stream), launch, inputs, outputs);
  for (const GpuDispatch& dispatch : launch.dispatches) {
    const auto [x, y, z] = dispatch.num_groups;
    if (x > 0 && y > 0 && z > 0) encoding.add(dispatch);  // an op without rows has no groups
  }
}

}  // namespace pagoda::mlx
