// Defines the members of mlx::core::metal that the mlx backend calls. An MLX without Metal lacks
// them, or its versions report that there is no Metal.
#include <fmt/format.h>
#include <mlx/backend/cpu/encoder.h>
#include <mlx/backend/metal/device.h>
#include <mlx/backend/metal/metal.h>

#include <algorithm>
#include <memory>
#include <string>
#include <unordered_map>
#include <variant>

#include "tests/metal/stand_in.h"
#include "tests/metal/stand_in_recorder.h"

namespace mlx::core::metal {
namespace {

using pagoda::mlx::stand_in::Recorder;
using pagoda::mlx::stand_in::recorder_of_stream;
using pagoda::mlx::stand_in::refuse;

constexpr size_t kMemoryBytes = size_t{4} << 30;  // the memory that tests see

Recorder& recorder_behind(MTL::ComputeCommandEncoder* encoder) {
  return static_cast<Recorder&>(*encoder);
}

}  // namespace

ResidencySets::ResidencySets(MTL::Device*) {}
ResidencySets::~ResidencySets() = default;

Device::Device() : residency_sets_(nullptr) {}
Device::~Device() = default;

MTL::Library* Device::get_library(const std::string& name, const CompileOptions& compile_options,
                                  const std::function<std::string()>& builder) {
  const std::string text = builder();
  if (compile_options.math_mode != MathMode::Safe)
    refuse(fmt::format("{}: is not compiled with IEEE arithmetic", name));
  const auto ascii = [](char c) { return static_cast<unsigned char>(c) < 0x80; };
  if (!std::ranges::all_of(text, ascii)) refuse(fmt::format("{}: its text is not ASCII", name));
  const std::unique_lock lock(library_mtx_);
  NS::SharedPtr<MTL::Library>& library = library_map_[name];
  if (!library) {
    auto made = std::make_shared<MTL::Library>();
    made->name = name;
    made->text = text;
    library = NS::SharedPtr<MTL::Library>(std::move(made));
    pagoda::mlx::stand_in::count_library();
  } else if (library.get()->text != text) {
    refuse(fmt::format("{}: two functions have this name, and other texts", name));
  }
  return library.get();
}

MTL::ComputePipelineState* Device::get_kernel(
    const std::string& base_name, MTL::Library* mtl_lib, const std::string& /*hash_name*/,
    const MTLFCList& /*func_consts*/, const std::vector<MTL::Function*>& /*linked_functions*/) {
  if (pagoda::emulator::find_kernel(base_name) == nullptr &&
      pagoda::emulator::find_kernel(base_name, /*traced=*/true) == nullptr)
    refuse(fmt::format("{}: is not among the emulator's kernels (tests/metal/kernels)", base_name));
  const std::unique_lock lock(kernel_mtx_);
  NS::SharedPtr<MTL::ComputePipelineState>& pipeline = library_kernels_[mtl_lib][base_name];
  if (!pipeline) {
    auto made = std::make_shared<MTL::ComputePipelineState>();
    made->name = base_name;
    pipeline = NS::SharedPtr<MTL::ComputePipelineState>(std::move(made));
  }
  return pipeline.get();
}

CommandEncoder::CommandEncoder(Device& device, int index, ResidencySets& residency_sets)
    : device_(device), residency_sets_(residency_sets), encoder_(recorder_of_stream(index)) {}

CommandEncoder::~CommandEncoder() = default;

MTL::ComputeCommandEncoder* CommandEncoder::get_command_encoder() {
  return encoder_.get();
}

void CommandEncoder::set_input_array(const array& a, int idx, int64_t offset) {
  recorder_behind(get_command_encoder()).bind(a, idx, offset, /*is_output=*/false);
}

void CommandEncoder::set_output_array(array& a, int idx, int64_t offset) {
  recorder_behind(get_command_encoder()).bind(a, idx, offset, /*is_output=*/true);
}

// NOLINTNEXTLINE(performance-unnecessary-value-param): as MLX declares it
void CommandEncoder::add_temporary(array arr) {
  recorder_behind(get_command_encoder()).add_temporary(arr);
}

void CommandEncoder::dispatch_threadgroups(MTL::Size grid_dims, MTL::Size group_dims) {
  recorder_behind(get_command_encoder()).dispatch(grid_dims, group_dims);
}

Device& device(mlx::core::Device) {
  static auto* const instance = new Device;  // used until the process ends
  return *instance;
}

std::unordered_map<int, CommandEncoder>& get_command_encoders() {
  static thread_local std::unordered_map<int, CommandEncoder> encoders;
  return encoders;
}

CommandEncoder& get_command_encoder(Stream stream) {
  cpu::get_command_encoder(stream);  // throws if the stream is another thread's
  recorder_of_stream(stream.index)->begin_launch();
  Device& owner = device(mlx::core::Device::gpu);
  return get_command_encoders()
      .try_emplace(stream.index, owner, stream.index, owner.residency_sets())
      .first->second;
}

bool is_available() {
  return true;
}

const std::unordered_map<std::string, std::variant<std::string, size_t>>& device_info() {
  static const auto* const info =
      new std::unordered_map<std::string, std::variant<std::string, size_t>>{
          {"device_name", std::string("stand-in for an Apple GPU")},
          {"memory_size", kMemoryBytes},
          {"max_recommended_working_set_size", kMemoryBytes / 4 * 3},
      };
  return *info;
}

}  // namespace mlx::core::metal
