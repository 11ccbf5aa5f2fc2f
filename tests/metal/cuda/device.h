// Device: it runs the launches of the harness on a GPU, or lists them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "backend/gpu/gpu_launch.h"
#include "core/status.h"

namespace pagoda::metal_on_cuda {

using Address = std::uint64_t;

// A dispatch with the addresses of its buffers.
struct KernelLaunch {
  gpu::GpuFunction function;
  std::vector<Address> buffers;
  gpu::GpuParameters parameters;
  std::array<int, 3> num_groups = {1, 1, 1};
  int num_threads = 32;
  int threadgroup_bytes = 0;
};

class Device {
 public:
  Device() = default;
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  virtual ~Device() = default;

  virtual Address allocate(std::size_t bytes) = 0;  // not zeroed
  virtual void release(Address address) = 0;
  virtual void fill(Address address, std::size_t bytes, std::byte value) = 0;
  virtual void copy_in(Address to, std::span<const std::byte> from) = 0;
  virtual void copy_out(std::span<std::byte> to, Address from) = 0;

  virtual void launch(const KernelLaunch& launch) = 0;
  // Returns the time of one round of the launches. It is the best of several measurements, each of
  // many rounds without a pause.
  virtual double seconds_of(std::span<const KernelLaunch> launches) = 0;
  virtual std::string name() const = 0;
};

// A device that only lists launches: memory is the host's, and no kernel runs.
class ListingDevice : public Device {
 public:
  // Returns a line per kernel, for make_cuda.py.
  virtual std::string lines() const = 0;
};
std::unique_ptr<ListingDevice> make_listing_device();

// Opens the first GPU. `folder` has make_cuda.py's files as compiled by nvcc, and its table.
Result<std::unique_ptr<Device>> make_cuda_device(const std::string& folder);

}  // namespace pagoda::metal_on_cuda
