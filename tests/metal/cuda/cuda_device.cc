#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <map>
#include <string>
#include <utility>

#include "tests/metal/cuda/device.h"
#include "tests/metal/cuda/driver.h"

namespace pagoda::metal_on_cuda {
namespace {

// A kernel in the table that make_cuda.py writes.
struct Entry {
  std::string unit;  // name of the kernel's file, without extension
  std::size_t num_buffers = 0;
  CuFunctionObject* function = nullptr;  // null until it is loaded
};

Result<std::map<std::string, Entry, std::less<>>> read_table(const std::string& folder) {
  std::map<std::string, Entry, std::less<>> entries;
  std::ifstream table(folder + "/kernels.table");
  std::string name;
  Entry entry;
  while (table >> name >> entry.unit >> entry.num_buffers) entries[name] = entry;
  if (entries.empty()) return not_found("[cuda] {}/kernels.table: expected kernels", folder);
  return entries;
}

class CudaDevice final : public Device {
 public:
  CudaDevice(std::unique_ptr<Driver> driver, std::string folder,
             std::map<std::string, Entry, std::less<>> entries)
      : driver_(std::move(driver)), folder_(std::move(folder)), entries_(std::move(entries)) {
    CuContextObject* context = nullptr;
    int device = 0;
    char name[256] = {};
    expect(driver_->init(0), "cuInit");
    expect(driver_->get_device(&device, 0), "cuDeviceGet");
    expect(driver_->get_name(name, sizeof(name), device), "cuDeviceGetName");
    expect(driver_->retain_context(&context, device), "cuDevicePrimaryCtxRetain");
    expect(driver_->set_context(context), "cuCtxSetCurrent");
    expect(driver_->make_stream(&stream_, 0), "cuStreamCreate");
    name_ = name;
  }

  Address allocate(std::size_t bytes) override {
    CuAddress address = 0;
    expect(driver_->allocate(&address, std::max<std::size_t>(bytes, 1)), "cuMemAlloc");
    return address;
  }
  // Waits for running kernels first, so that the failure of a kernel is reported with its name.
  void release(Address address) override {
    expect(driver_->synchronize(), "waiting before cuMemFree");
    expect(driver_->release(address), "cuMemFree");
  }
  void fill(Address address, std::size_t bytes, std::byte value) override {
    if (bytes == 0) return;
    expect(driver_->fill(address, static_cast<unsigned char>(value), bytes), "cuMemsetD8");
  }
  void copy_in(Address to, std::span<const std::byte> from) override {
    if (from.empty()) return;
    expect(driver_->copy_in(to, from.data(), from.size()), "cuMemcpyHtoD");
  }
  void copy_out(std::span<std::byte> to, Address from) override {
    if (to.empty()) return;
    expect(driver_->copy_out(to.data(), from, to.size()), "cuMemcpyDtoH");
  }

  void launch(const KernelLaunch& launch) override {
    launch_on(launch, nullptr);
    expect(driver_->synchronize(), launch.function.binary_name());
  }

  double seconds_of(std::span<const KernelLaunch> launches) override;
  std::string name() const override { return name_; }

 private:
  void expect(CuResult result, std::string_view what) const {
    if (result == 0) return;
    const char* text = nullptr;
    driver_->get_error(result, &text);
    PAGODA_CHECK(false, fmt::format("[cuda] {}: {}", what, text == nullptr ? "an error" : text));
  }

  Entry& entry_of(const gpu::GpuFunction& function) {
    const std::string name = function.binary_name();
    const auto found = entries_.find(name);
    PAGODA_CHECK(found != entries_.end(), fmt::format("[cuda] no file has {}", name));
    Entry& entry = found->second;
    if (entry.function == nullptr) {
      CuModuleObject*& module = modules_[entry.unit];
      if (module == nullptr) {
        const std::string path = fmt::format("{}/{}.cubin", folder_, entry.unit);
        expect(driver_->load_module(&module, path.c_str()), path);
      }
      expect(driver_->get_function(&entry.function, module, name.c_str()), name);
    }
    return entry;
  }

  void launch_on(const KernelLaunch& launch, CuStreamObject* stream) {
    const Entry& entry = entry_of(launch.function);
    PAGODA_CHECK(
        entry.num_buffers == launch.buffers.size(),
        fmt::format("[cuda] {}: expected {} buffers, got {}", launch.function.binary_name(),
                    entry.num_buffers, launch.buffers.size()));
    std::vector<CuAddress> addresses(launch.buffers.begin(), launch.buffers.end());
    gpu::GpuParameters parameters = launch.parameters;
    std::vector<void*> arguments;
    for (CuAddress& address : addresses) arguments.push_back(&address);
    arguments.push_back(const_cast<std::byte*>(parameters.data()));
    const auto groups = [&](int i) { return static_cast<unsigned>(launch.num_groups[i]); };
    expect(driver_->launch(entry.function, groups(0), groups(1), groups(2),
                           static_cast<unsigned>(launch.num_threads), 1, 1,
                           static_cast<unsigned>(launch.threadgroup_bytes), stream,
                           arguments.data(), nullptr),
           launch.function.binary_name());
  }

  // Returns the time that `rounds` launches of a graph take, one directly after another.
  double seconds_of(CuGraphExecObject* graph, int rounds);

  std::unique_ptr<Driver> driver_;
  std::string folder_;
  std::map<std::string, Entry, std::less<>> entries_;
  std::map<std::string, CuModuleObject*> modules_;
  CuStreamObject* stream_ = nullptr;
  std::string name_;
};

double CudaDevice::seconds_of(CuGraphExecObject* graph, int rounds) {
  CuEventObject* events[2] = {};
  for (CuEventObject*& event : events) expect(driver_->make_event(&event, 0), "cuEventCreate");
  expect(driver_->record_event(events[0], stream_), "cuEventRecord");
  for (int i = 0; i < rounds; ++i) expect(driver_->launch_graph(graph, stream_), "cuGraphLaunch");
  expect(driver_->record_event(events[1], stream_), "cuEventRecord");
  expect(driver_->wait_for_event(events[1]), "cuEventSynchronize");
  float milliseconds = 0;
  expect(driver_->milliseconds(&milliseconds, events[0], events[1]), "cuEventElapsedTime");
  return milliseconds * 1e-3;
}

// Times launches as a graph, so that the time excludes the host's work for a launch.
double CudaDevice::seconds_of(std::span<const KernelLaunch> launches) {
  constexpr double kMeasured = 0.05;  // seconds
  constexpr int kRepetitions = 5;
  for (const KernelLaunch& launch : launches) entry_of(launch.function);
  CuGraphObject* graph = nullptr;
  CuGraphExecObject* exec = nullptr;
  expect(driver_->begin_capture(stream_, /*mode=*/2), "cuStreamBeginCapture");
  for (const KernelLaunch& launch : launches) launch_on(launch, stream_);
  expect(driver_->end_capture(stream_, &graph), "cuStreamEndCapture");
  expect(driver_->instantiate(&exec, graph, 0), "cuGraphInstantiate");
  seconds_of(exec, 1);
  const double once = seconds_of(exec, 1);
  const int rounds = std::clamp(static_cast<int>(kMeasured / once), 1, 1000);
  double best = seconds_of(exec, rounds);
  for (int i = 1; i < kRepetitions; ++i) best = std::min(best, seconds_of(exec, rounds));
  expect(driver_->destroy_exec(exec), "cuGraphExecDestroy");
  expect(driver_->destroy_graph(graph), "cuGraphDestroy");
  return best / rounds;
}

}  // namespace

Result<std::unique_ptr<Device>> make_cuda_device(const std::string& folder) {
  PAGODA_ASSIGN_OR_RETURN(auto driver, load_driver());
  PAGODA_ASSIGN_OR_RETURN(auto entries, read_table(folder));
  return std::unique_ptr<Device>(
      std::make_unique<CudaDevice>(std::move(driver), folder, std::move(entries)));
}

}  // namespace pagoda::metal_on_cuda
