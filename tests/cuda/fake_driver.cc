#include "tests/cuda/fake_driver.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <utility>

#include "backend/cuda/kernel_text.h"
#include "core/check.h"

namespace pagoda::cuda {
namespace {

constexpr CuResult kFailure = 719;  // CUDA_ERROR_LAUNCH_FAILED

FakeDriver* current = nullptr;

}  // namespace

// The driver's functions. Each counts its call, and may fail it.
struct FakeCalls {
  static bool fails() {
    ++current->num_calls_;
    return current->calls_until_failure_ > 0 && --current->calls_until_failure_ == 0;
  }

  template <typename Handle>
  static Handle* new_handle() {
    return reinterpret_cast<Handle*>(++current->last_handle_);
  }

  // Checks that bytes of the device are allocated, and returns the allocation's number.
  static std::uintptr_t expect_memory(Address address, std::size_t bytes) {
    const auto above = current->device_memory_.upper_bound(address);
    PAGODA_CHECK(above != current->device_memory_.begin(), "memory that was never allocated");
    const auto& [begin, allocation] = *std::prev(above);
    PAGODA_CHECK(address - begin <= allocation.size && bytes <= allocation.size - (address - begin),
                 "bytes past an allocation's end");
    return allocation.serial;
  }

  static void enqueue(CuStream* stream, FakeDriver::Work work) {
    PAGODA_CHECK(current->streams_.count(stream) == 1, "work on a stream that is not there");
    const auto capture = current->captures_.find(stream);
    if (capture == current->captures_.end()) {
      current->streams_[stream].push(std::move(work));
    } else {
      capture->second.push_back(std::move(work));
    }
  }

  static void run_one(CuStream* stream) {
    std::queue<FakeDriver::Work>& queue = current->streams_[stream];
    const FakeDriver::Work work = std::move(queue.front());
    queue.pop();
    work();
  }

  static CuResult init(unsigned) { return fails() ? kFailure : kCuSuccess; }
  static CuResult get_version(int* version) {
    *version = 12080;
    return fails() ? kFailure : kCuSuccess;
  }
  static CuResult count_devices(int* count) {
    *count = current->options_.num_devices;
    return fails() ? kFailure : kCuSuccess;
  }
  static CuResult get_device(int* device, int ordinal) {
    *device = ordinal;
    return fails() ? kFailure : kCuSuccess;
  }
  static CuResult get_name(char* name, int size, int) {
    std::snprintf(name, static_cast<std::size_t>(size), "Fake GPU");
    return fails() ? kFailure : kCuSuccess;
  }
  static CuResult get_attribute(int* value, CuAttribute attribute, int) {
    *value = attribute == CuAttribute::kMajor ? current->options_.major : current->options_.minor;
    return fails() ? kFailure : kCuSuccess;
  }
  static CuResult get_memory(std::size_t* free, std::size_t* total) {
    *total = current->options_.memory_bytes;
    *free = *total - current->allocated_bytes_;
    return fails() ? kFailure : kCuSuccess;
  }
  static CuResult retain_context(CuContext** context, int) {
    if (fails()) return kFailure;
    *context = new_handle<CuContext>();
    ++current->num_contexts_;
    return kCuSuccess;
  }
  static CuResult release_context(int) {
    --current->num_contexts_;
    return kCuSuccess;
  }
  static CuResult set_context(CuContext*) { return kCuSuccess; }
  static CuResult get_error(CuResult, const char** text) {
    *text = "a failure that the test asked for";
    return kCuSuccess;
  }

  static CuResult allocate(Address* address, std::size_t bytes) {
    if (fails()) return kFailure;
    if (current->allocated_bytes_ + bytes > current->options_.memory_bytes) return kCuOutOfMemory;
    void* const memory = std::malloc(bytes);
    *address = reinterpret_cast<Address>(memory);
    current->device_memory_[*address] = {bytes, ++current->last_handle_};
    current->allocated_bytes_ += bytes;
    return kCuSuccess;
  }
  // Waits for all streams first, as the driver does.
  static CuResult release(Address address) {
    for (const auto& [stream, queue] : current->streams_) (void)synchronize_quietly(stream);
    const auto found = current->device_memory_.find(address);
    PAGODA_CHECK(found != current->device_memory_.end(), "a release of what is not there");
    current->allocated_bytes_ -= found->second.size;
    current->device_memory_.erase(found);
    std::free(reinterpret_cast<void*>(address));
    return kCuSuccess;
  }
  static CuResult allocate_host(void** address, std::size_t bytes) {
    if (fails()) return kFailure;
    *address = std::malloc(bytes);
    current->host_memory_.insert(*address);
    return kCuSuccess;
  }
  static CuResult release_host(void* address) {
    PAGODA_CHECK(current->host_memory_.erase(address) == 1, "a release of what is not there");
    std::free(address);
    return kCuSuccess;
  }
  static CuResult fill(Address address, unsigned char value, std::size_t bytes, CuStream* stream) {
    if (fails()) return kFailure;
    expect_memory(address, bytes);
    enqueue(stream, [=] { std::memset(reinterpret_cast<void*>(address), value, bytes); });
    return kCuSuccess;
  }
  static CuResult copy_in(Address to, const void* from, std::size_t bytes, CuStream* stream) {
    if (fails()) return kFailure;
    const std::uintptr_t allocation = expect_memory(to, bytes);
    enqueue(stream, [=] {
      PAGODA_CHECK(expect_memory(to, bytes) == allocation, "a copy to memory that was released");
      std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    });
    return kCuSuccess;
  }
  static CuResult copy_out(void* to, Address from, std::size_t bytes, CuStream* stream) {
    if (fails()) return kFailure;
    expect_memory(from, bytes);
    enqueue(stream, [=] { std::memcpy(to, reinterpret_cast<const void*>(from), bytes); });
    return kCuSuccess;
  }

  static CuResult load_module(CuModule** module, const void* image) {
    if (fails()) return kFailure;
    *module = new_handle<CuModule>();
    current->modules_[*module] = static_cast<const char*>(image);
    return kCuSuccess;
  }
  static CuResult unload_module(CuModule* module) {
    PAGODA_CHECK(current->modules_.erase(module) == 1, "a module that is not there");
    return kCuSuccess;
  }
  // Returns the size of an entry point's argument, as the driver knows it: a FakeCompiler's text says
  // it; of real binaries no argument is looked at.
  static std::size_t argument_size(const std::string& text) {
    constexpr std::string_view kType = "const __grid_constant__ KernelArguments<";
    const std::size_t at = text.find(kType);
    std::size_t num_buffers = 0, parameter_bytes = 0;
    if (at == std::string::npos || std::sscanf(text.c_str() + at + kType.size(), "%zu, %zu",
                                               &num_buffers, &parameter_bytes) != 2)
      return 0;
    return argument_bytes(num_buffers, parameter_bytes);
  }
  static CuResult get_function(CuFunction** function, CuModule* module, const char* name) {
    if (fails()) return kFailure;
    PAGODA_CHECK(current->modules_.count(module) == 1, "a module that is not there");
    *function = new_handle<CuFunction>();
    current->functions_[*function] = {name, argument_size(current->modules_[module])};
    return kCuSuccess;
  }
  static CuResult launch(CuFunction* function, unsigned x, unsigned y, unsigned z,
                         unsigned num_threads, unsigned, unsigned, unsigned shared_bytes,
                         CuStream* stream, void** arguments, void**) {
    if (fails()) return kFailure;
    const FakeDriver::Function& entry = current->functions_.at(function);
    const auto* const bytes = static_cast<const std::byte*>(arguments[0]);
    FakeLaunch launch{.kernel = entry.name,
                      .num_groups = {x, y, z},
                      .num_threads = num_threads,
                      .shared_bytes = shared_bytes,
                      .argument = {bytes, bytes + entry.argument_bytes}};
    ++current->num_launches_;
    enqueue(stream, [launch = std::move(launch)] {
      const auto kernel = current->kernels.find(launch.kernel);
      if (kernel != current->kernels.end()) kernel->second(launch);
    });
    return kCuSuccess;
  }

  static CuResult make_stream(CuStream** stream, unsigned) {
    if (fails()) return kFailure;
    *stream = new_handle<CuStream>();
    current->streams_[*stream];
    return kCuSuccess;
  }
  static CuResult destroy_stream(CuStream* stream) {
    PAGODA_CHECK(current->streams_.erase(stream) == 1, "a stream that is not there");
    return kCuSuccess;
  }
  static CuResult synchronize_quietly(CuStream* stream) {
    while (!current->streams_.at(stream).empty()) run_one(stream);
    return kCuSuccess;
  }
  static CuResult synchronize(CuStream* stream) {
    if (fails()) return kFailure;
    return synchronize_quietly(stream);
  }
  static CuResult begin_capture(CuStream* stream, int) {
    if (fails()) return kFailure;
    current->captures_[stream];
    return kCuSuccess;
  }
  // Ends the capture even if the call fails.
  static CuResult end_capture(CuStream* stream, CuGraph** graph) {
    const std::vector<FakeDriver::Work> work = std::move(current->captures_.at(stream));
    current->captures_.erase(stream);
    if (fails()) return kFailure;
    *graph = new_handle<CuGraph>();
    current->graphs_[*graph] = work;
    return kCuSuccess;
  }
  static CuResult instantiate_graph(CuGraphExec** exec, CuGraph* graph, unsigned long long) {
    if (fails()) return kFailure;
    *exec = new_handle<CuGraphExec>();
    current->graph_execs_[*exec] = current->graphs_.at(graph);
    return kCuSuccess;
  }
  static CuResult launch_graph(CuGraphExec* exec, CuStream* stream) {
    if (fails()) return kFailure;
    for (const FakeDriver::Work& work : current->graph_execs_.at(exec)) enqueue(stream, work);
    return kCuSuccess;
  }
  static CuResult destroy_graph(CuGraph* graph) {
    PAGODA_CHECK(current->graphs_.erase(graph) == 1, "a graph that is not there");
    return kCuSuccess;
  }
  static CuResult destroy_graph_exec(CuGraphExec* exec) {
    PAGODA_CHECK(current->graph_execs_.erase(exec) == 1, "a graph that is not there");
    return kCuSuccess;
  }
  static CuResult make_event(CuEvent** event, unsigned) {
    if (fails()) return kFailure;
    *event = new_handle<CuEvent>();
    current->events_[*event] = nullptr;
    return kCuSuccess;
  }
  static CuResult destroy_event(CuEvent* event) {
    PAGODA_CHECK(current->events_.erase(event) == 1, "an event that is not there");
    return kCuSuccess;
  }
  static CuResult record_event(CuEvent* event, CuStream* stream) {
    if (fails()) return kFailure;
    current->events_.at(event) = stream;
    current->has_happened_[event] = false;
    enqueue(stream, [event] { current->has_happened_[event] = true; });
    return kCuSuccess;
  }
  static CuResult synchronize_event(CuEvent* event) {
    if (fails()) return kFailure;
    while (!current->has_happened_.at(event)) run_one(current->events_.at(event));
    return kCuSuccess;
  }
};

std::byte* FakeLaunch::buffer(std::size_t index) const {
  Address address = 0;
  std::memcpy(&address, argument.data() + index * sizeof(address), sizeof(address));
  return reinterpret_cast<std::byte*>(address);
}

FakeDriver::FakeDriver(const FakeOptions& options) : options_(options) {
  PAGODA_CHECK(current == nullptr, "there is one fake driver");
  current = this;
}

FakeDriver::~FakeDriver() {
  PAGODA_CHECK(device_memory_.empty() && host_memory_.empty(), "memory was not released");
  PAGODA_CHECK(streams_.empty() && events_.empty() && modules_.empty() && num_contexts_ == 0,
               "what the driver made was not destroyed");
  PAGODA_CHECK(graphs_.empty() && graph_execs_.empty(), "a graph was not destroyed");
  current = nullptr;
}

std::size_t FakeDriver::num_waiting() const {
  std::size_t count = 0;
  for (const auto& [stream, queue] : streams_) count += queue.size();
  return count;
}

std::shared_ptr<const Driver> FakeDriver::table() const {
  return std::make_shared<const Driver>(Driver{
      .init = FakeCalls::init,
      .get_version = FakeCalls::get_version,
      .count_devices = FakeCalls::count_devices,
      .get_device = FakeCalls::get_device,
      .get_name = FakeCalls::get_name,
      .get_attribute = FakeCalls::get_attribute,
      .get_memory = FakeCalls::get_memory,
      .retain_context = FakeCalls::retain_context,
      .release_context = FakeCalls::release_context,
      .set_context = FakeCalls::set_context,
      .get_error = FakeCalls::get_error,
      .allocate = FakeCalls::allocate,
      .release = FakeCalls::release,
      .allocate_host = FakeCalls::allocate_host,
      .release_host = FakeCalls::release_host,
      .fill = FakeCalls::fill,
      .copy_in = FakeCalls::copy_in,
      .copy_out = FakeCalls::copy_out,
      .load_module = FakeCalls::load_module,
      .unload_module = FakeCalls::unload_module,
      .get_function = FakeCalls::get_function,
      .launch = FakeCalls::launch,
      .make_stream = FakeCalls::make_stream,
      .destroy_stream = FakeCalls::destroy_stream,
      .synchronize = FakeCalls::synchronize,
      .begin_capture = FakeCalls::begin_capture,
      .end_capture = FakeCalls::end_capture,
      .instantiate_graph = FakeCalls::instantiate_graph,
      .launch_graph = FakeCalls::launch_graph,
      .destroy_graph = FakeCalls::destroy_graph,
      .destroy_graph_exec = FakeCalls::destroy_graph_exec,
      .make_event = FakeCalls::make_event,
      .destroy_event = FakeCalls::destroy_event,
      .record_event = FakeCalls::record_event,
      .synchronize_event = FakeCalls::synchronize_event,
  });
}

Result<std::string> FakeCompiler::compile(const std::string& text, const std::string&,
                                          const std::string&) {
  ++num_compiled_;
  return text;
}

}  // namespace pagoda::cuda
