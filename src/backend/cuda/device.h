// Device: an NVIDIA GPU that is open, and its memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "backend/cuda/driver.h"
#include "core/status.h"

namespace pagoda::cuda {

// Thread-safe. Each thread makes the device current before it calls the driver by itself.
class Device {
 public:
  // Opens the first GPU. kUnavailable if there is none, or if it is older than Ampere.
  static Result<std::shared_ptr<Device>> open(std::shared_ptr<const Driver> driver);
  ~Device();
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;

  const Driver& driver() const { return *driver_; }
  // Returns "sm_90a": what kernels are compiled for. From Hopper on it is the very GPU's.
  const std::string& architecture() const { return architecture_; }
  const std::string& name() const { return name_; }
  int driver_major() const { return driver_major_; }  // of the CUDA version that the driver knows
  std::size_t total_bytes() const { return total_bytes_; }
  std::size_t free_bytes() const;

  // Makes the GPU the one that the thread's calls of the driver mean.
  void make_current() const;
  Result<Address> allocate(std::size_t bytes) const;
  // Waits for all work on the GPU first.
  void release(Address address) const;

 private:
  Device(std::shared_ptr<const Driver> driver, int ordinal);
  Status read_facts();

  std::shared_ptr<const Driver> driver_;
  int ordinal_;
  CuContext* context_ = nullptr;
  std::string name_;
  std::string architecture_;
  int driver_major_ = 0;
  std::size_t total_bytes_ = 0;
};

}  // namespace pagoda::cuda
