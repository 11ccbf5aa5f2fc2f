#include "backend/cuda/device.h"

#include <algorithm>
#include <utility>

namespace pagoda::cuda {
namespace {

constexpr int kFirst = 0;   // of the GPUs that CUDA_VISIBLE_DEVICES leaves
constexpr int kAmpere = 8;  // compute capability 8.0
constexpr int kHopper = 9;

}  // namespace

Device::Device(std::shared_ptr<const Driver> driver, int ordinal)
    : driver_(std::move(driver)), ordinal_(ordinal) {}

Device::~Device() {
  if (context_ != nullptr) (void)driver_->release_context(ordinal_);
}

Result<std::shared_ptr<Device>> Device::open(std::shared_ptr<const Driver> driver) {
  const Driver& calls = *driver;
  PAGODA_RETURN_IF_ERROR(calls.status_of(calls.init(0), "starting the driver"));
  int count = 0;
  PAGODA_RETURN_IF_ERROR(calls.status_of(calls.count_devices(&count), "counting GPUs"));
  if (count == 0) return unavailable("[device] cuda: expected an NVIDIA GPU, got none");
  int ordinal = 0;
  PAGODA_RETURN_IF_ERROR(calls.status_of(calls.get_device(&ordinal, kFirst), "opening a GPU"));
  std::shared_ptr<Device> device(new Device(std::move(driver), ordinal));
  PAGODA_RETURN_IF_ERROR(device->read_facts());
  return device;
}

Status Device::read_facts() {
  const Driver& calls = *driver_;
  const auto expect = [&](CuResult result) {
    return calls.status_of(result, "asking for the GPU's properties");
  };
  char name[256] = {};
  int version = 0, major = 0, minor = 0;
  PAGODA_RETURN_IF_ERROR(expect(calls.get_name(name, sizeof(name), ordinal_)));
  PAGODA_RETURN_IF_ERROR(expect(calls.get_version(&version)));
  PAGODA_RETURN_IF_ERROR(expect(calls.get_attribute(&major, CuAttribute::kMajor, ordinal_)));
  PAGODA_RETURN_IF_ERROR(expect(calls.get_attribute(&minor, CuAttribute::kMinor, ordinal_)));
  name_ = name;
  driver_major_ = version / 1000;
  architecture_ = fmt::format("sm_{}{}{}", major, minor, major >= kHopper ? "a" : "");
  if (major < kAmpere) {
    return unavailable(
        "[device] cuda: expected a GPU of compute capability 8.0 or later, got {} "
        "with {}.{}",
        name_, major, minor);
  }
  PAGODA_RETURN_IF_ERROR(
      calls.status_of(calls.retain_context(&context_, ordinal_), "opening the GPU"));
  make_current();
  std::size_t free = 0;
  return expect(calls.get_memory(&free, &total_bytes_));
}

std::size_t Device::free_bytes() const {
  make_current();
  std::size_t free = 0, total = 0;
  if (driver_->get_memory(&free, &total) != kCuSuccess) return 0;
  return free;
}

void Device::make_current() const {
  // It fails only where the driver is gone, and then the next call fails, too.
  (void)driver_->set_context(context_);
}

Result<Address> Device::allocate(std::size_t bytes) const {
  make_current();
  Address address = 0;
  const CuResult result = driver_->allocate(&address, std::max<std::size_t>(bytes, 1));
  PAGODA_RETURN_IF_ERROR(
      driver_->status_of(result, fmt::format("allocating {} bytes on the GPU", bytes)));
  return address;
}

void Device::release(Address address) const {
  make_current();
  (void)driver_->release(address);
}

}  // namespace pagoda::cuda
