#include "tests/metal/stand_in_recorder.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <mutex>
#include <stdexcept>
#include <utility>

namespace pagoda::mlx::stand_in {
namespace {

constexpr std::size_t kMostRemembered = 1 << 14;  // entries in a map before expired ones are erased

struct Global {
  std::mutex mutex;
  Options options = options_of_environment();
  std::uint64_t generation = 1;
  Counts counts;
};

Global& global() {
  static auto* const instance = new Global;  // MLX's threads outlive main()
  return *instance;
}

std::int64_t number_of_environment(const char* name, std::int64_t otherwise) {
  const char* const text = std::getenv(name);
  return text != nullptr ? std::strtoll(text, nullptr, 10) : otherwise;
}

// Returns whether two events share the same MLX object.
bool is_same(const mx::Event& a, const mx::Event& b) {
  if (!a.valid() || !b.valid()) return a.valid() == b.valid();
  return &a.cast<char>() == &b.cast<char>();
}

template <typename Map>
void forget_the_gone(Map& map) {
  if (map.size() < kMostRemembered) return;
  std::erase_if(map, [](const auto& entry) { return entry.second.expired(); });
}

bool is_of(const std::weak_ptr<mx::array::Data>& memory, const mx::array& array) {
  const auto alive = memory.lock();
  return alive != nullptr && alive == array.data_shared_ptr();
}

using Recorders = std::unordered_map<int, std::shared_ptr<Recorder>>;

Recorders& recorders_of_thread() {
  static thread_local Recorders recorders;
  return recorders;
}

}  // namespace

Options options_of_environment() {
  Options options;
  EncoderLimits& limits = options.limits;
  limits.dispatches_per_encoder = static_cast<int>(
      number_of_environment("PAGODA_METAL_ENCODER", limits.dispatches_per_encoder));
  limits.max_ops =
      static_cast<int>(number_of_environment("MLX_MAX_OPS_PER_BUFFER", limits.max_ops));
  limits.max_megabytes = static_cast<std::size_t>(number_of_environment(
      "MLX_MAX_MB_PER_BUFFER", static_cast<std::int64_t>(limits.max_megabytes)));
  options.seed = static_cast<std::uint64_t>(
      number_of_environment("PAGODA_METAL_SEED", static_cast<std::int64_t>(options.seed)));
  options.is_traced = number_of_environment("PAGODA_METAL_TRACED", 0) != 0;
  options.emulator.matrix_order =
      static_cast<emulator::MatrixOrder>(number_of_environment("PAGODA_METAL_MATRIX", 0));
  options.emulator.sum_order =
      static_cast<emulator::SumOrder>(number_of_environment("PAGODA_METAL_SUM", 0));
  fmt::print(
      stderr,
      "[metal] stand-in: PAGODA_METAL_SEED={} PAGODA_METAL_ENCODER={} PAGODA_METAL_MATRIX={} "
      "PAGODA_METAL_SUM={} PAGODA_METAL_TRACED={}\n",
      options.seed, limits.dispatches_per_encoder, static_cast<int>(options.emulator.matrix_order),
      static_cast<int>(options.emulator.sum_order), options.is_traced ? 1 : 0);
  return options;
}

void configure(const Options& options) {
  close_all_windows();
  const std::lock_guard lock(global().mutex);
  global().options = options;
  ++global().generation;
}

void close_window() {
  for (const auto& [index, recorder] : recorders_of_thread()) recorder->commit();
  close_all_windows();
}

Counts counts() {
  const std::lock_guard lock(global().mutex);
  Counts result = global().counts;
  result.idle_closes = num_idle_closes();
  return result;
}

void reset_counts() {
  const std::lock_guard lock(global().mutex);
  global().counts = {};
  reset_idle_closes();
  reset_kernel_counts();
}

std::shared_ptr<Recorder> recorder_of_stream(int index) {
  std::shared_ptr<Recorder>& recorder = recorders_of_thread()[index];
  if (recorder == nullptr)
    recorder = std::make_shared<Recorder>(mx::Stream(index, mx::Device::cpu));
  return recorder;
}

void count_library() {
  const std::lock_guard lock(global().mutex);
  ++global().counts.libraries;
}

void refuse(std::string_view why) {
  close_all_windows();
  throw std::runtime_error(fmt::format("[metal] {}", why));
}

Recorder::Recorder(mx::Stream stream) : stream_(stream), rules_(EncoderLimits()) {}

Recorder::~Recorder() {
  close_window();
}

void Recorder::start(const Options& options) {
  close_window();
  options_ = options;
  rules_ = EncoderRules(options.limits);
  published_ = {};
  num_windows_ = 0;
  event_ = {};
}

void Recorder::begin_launch() {
  {
    Global& all = global();
    std::unique_lock lock(all.mutex);
    if (generation_ != all.generation) {
      generation_ = all.generation;
      const Options options = all.options;
      lock.unlock();
      start(options);
    }
  }
  rules_.begin_operation();
  publish_counts();
  temporaries_.clear();
  results_.clear();
  next_ = {};
  begins_launch_ = true;
}

void Recorder::commit() {
  rules_.commit();
  publish_counts();
}

void Recorder::close_window() {
  if (window_ != nullptr) window_->close();
  window_ = nullptr;
}

void Recorder::publish_counts() {
  const EncoderCounts now = rules_.counts();
  const std::lock_guard lock(global().mutex);
  Counts& counts = global().counts;
  counts.barriers += now.barriers - published_.barriers;
  counts.encoders += now.encoders - published_.encoders;
  counts.command_buffers += now.command_buffers - published_.command_buffers;
  published_ = now;
}

void Recorder::add_temporary(const mx::array& array) {
  temporaries_.push_back(array.data_shared_ptr());
}

bool Recorder::is_temporary(const mx::array& array) const {
  return std::ranges::any_of(temporaries_,
                             [&](const auto& memory) { return is_of(memory, array); });
}

bool Recorder::is_written_here(const mx::array& array) const {
  const auto found = written_arrays_.find(array.id());
  return found != written_arrays_.end() && is_of(found->second, array);
}

void Recorder::bind(const mx::array& array, int index, std::int64_t byte_offset, bool is_output) {
  const std::shared_ptr<mx::array::Data>& memory = array.data_shared_ptr();
  if (memory == nullptr) refuse(fmt::format("index {}: the array has no memory", index));
  const bool is_owned_by_array = memory.use_count() == 1;
  Binding binding{.index = static_cast<std::size_t>(index), .memory = memory};
  binding.data = const_cast<std::byte*>(reinterpret_cast<const std::byte*>(array.data<char>()));
  binding.array_bytes = static_cast<std::int64_t>(array.data_size() * array.itemsize());
  binding.byte_offset = byte_offset;
  binding.dtype = array.dtype();
  binding.is_output = is_output;
  binding.is_temporary = is_temporary(array);
  binding.is_typed = is_output || is_written_here(array);
  binding.is_fresh = is_output && is_owned_by_array;
  if (is_output) {
    next_.outputs.push_back(array.id());
    if (!binding.is_temporary) {
      next_.has_output = true;
      next_.event = array.event();
    }
    const auto found = written_memory_.find(memory.get());
    const bool is_known = found != written_memory_.end() && !found->second.expired();
    // The output shares memory that an operation of MLX itself may compute.
    if (!binding.is_fresh && !is_known && memory->is_owned()) next_.is_foreign = true;
  } else if (array.status() == mx::array::Status::evaluated && !binding.is_temporary &&
             !binding.is_typed) {
    const std::lock_guard lock(global().mutex);
    ++global().counts.foreign_inputs;
    global().counts.foreign_bytes += array.nbytes();
    next_.is_foreign = true;  // whether it is done depends on the clock
  }
  next_.command.bindings.push_back(std::move(binding));
}

void Recorder::setComputePipelineState(const MTL::ComputePipelineState* pipeline) {
  next_.command.kernel = emulator::find_kernel(pipeline->name, options_.is_traced);
  if (next_.command.kernel == nullptr) next_.command.kernel = emulator::find_kernel(pipeline->name);
}

void Recorder::setBytes(const void* bytes, NS::UInteger length, NS::UInteger index) {
  const auto* const first = static_cast<const std::byte*>(bytes);
  next_.command.parameters.push_back({index, {first, first + length}});
}

void Recorder::setThreadgroupMemoryLength(NS::UInteger length, NS::UInteger index) {
  if (index != 0) refuse(fmt::format("threadgroup memory of index {}", index));
  next_.command.threadgroup_bytes = length;
}

void Recorder::dispatch(MTL::Size num_groups, MTL::Size num_threads) {
  Next next = std::exchange(next_, {});
  Command& command = next.command;
  command.num_groups = {num_groups.width, num_groups.height, num_groups.depth};
  command.num_threads = {num_threads.width, num_threads.height, num_threads.depth};
  if (const std::string refusal = refusal_of(command); !refusal.empty()) refuse(refusal);

  if (begins_launch_) {
    const std::lock_guard lock(global().mutex);
    ++global().counts.launches;
  }
  const bool blocks = next.has_output && !next.event.valid();
  if (next.has_output) {
    // A new event means a new evaluation. In the middle of a launch the event is ignored: the next
    // launch will see it.
    if (begins_launch_) {
      if (!is_same(event_, next.event)) rules_.commit();
      event_ = next.event;
    }
  }
  begins_launch_ = false;
  if (next.is_foreign || blocks) close_window();

  std::vector<Use> uses;
  for (const Binding& binding : command.bindings) uses.push_back(binding.use());
  command.place = rules_.place_dispatch(uses);
  publish_counts();
  if (options_.skips_kernels) {
    clear_fresh_buffers(command);
  } else {
    poison_fresh_buffers(command);
  }
  record(next);
  if (blocks || window_size_ >= options_.window_size) close_window();
}

// Returns the number of arrays that no earlier dispatch of the launch has written.
std::uint64_t Recorder::count_results(const Next& next) {
  const std::size_t before = results_.size();
  std::size_t output = 0;
  for (const Binding& binding : next.command.bindings) {
    if (!binding.is_output) continue;
    const std::uintptr_t array = next.outputs[output++];
    if (!binding.is_temporary && std::ranges::find(results_, array) == results_.end())
      results_.push_back(array);
  }
  return results_.size() - before;
}

void Recorder::record(const Next& next) {
  const Command& command = next.command;
  std::uint64_t bound_bytes = 0;
  std::size_t output = 0;
  for (const Binding& binding : command.bindings) {
    bound_bytes += static_cast<std::uint64_t>(binding.num_bytes());
    if (!binding.is_output) continue;
    written_arrays_[next.outputs[output++]] = binding.memory;
    written_memory_[binding.memory.get()] = binding.memory;
  }
  forget_the_gone(written_arrays_);
  forget_the_gone(written_memory_);
  bool is_new = false;
  while (!options_.skips_kernels && (window_ == nullptr || !window_->add(command))) {
    constexpr std::uint64_t kStride = 0x9e3779b97f4a7c15;  // window seeds differ in many bits
    emulator::Options options = options_.emulator;
    options.seed = options_.seed + num_windows_ * kStride;
    window_ = Window::open(stream_, options_.is_shuffled, options);
    ++num_windows_;
    window_size_ = 0;
    is_new = true;
  }
  ++window_size_;
  const std::uint64_t results = count_results(next);
  const std::lock_guard lock(global().mutex);
  global().counts.results += results;
  global().counts.windows += is_new ? 1 : 0;
  global().counts.bound_bytes += bound_bytes;
  ++global().counts.dispatches;
}

}  // namespace pagoda::mlx::stand_in
