#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>

#include "tests/metal/cuda/device.h"

namespace pagoda::metal_on_cuda {
namespace {

std::byte* host(Address address) {
  return reinterpret_cast<std::byte*>(address);
}

class Listing final : public ListingDevice {
 public:
  // Zeroed, so that the host always computes the same from results.
  Address allocate(std::size_t bytes) override {
    return reinterpret_cast<Address>(std::calloc(bytes, 1));
  }
  void release(Address address) override { std::free(host(address)); }
  void fill(Address, std::size_t, std::byte) override {}
  void copy_in(Address to, std::span<const std::byte> from) override {
    if (!from.empty()) std::memcpy(host(to), from.data(), from.size());
  }
  void copy_out(std::span<std::byte> to, Address from) override {
    if (!to.empty()) std::memcpy(to.data(), host(from), to.size());
  }

  void launch(const KernelLaunch& launch) override {
    const gpu::GpuFunction& function = launch.function;
    const std::string arguments =
        function.arguments.empty() ? "-" : fmt::format("{}", fmt::join(function.arguments, ","));
    int& num_threads =
        num_threads_[fmt::format("{} {} {}", function.source->name, function.name, arguments)];
    num_threads = std::max(num_threads, launch.num_threads);
  }
  double seconds_of(std::span<const KernelLaunch> launches) override {
    for (const KernelLaunch& one : launches) launch(one);
    return 1;
  }
  std::string name() const override { return "a list"; }

  std::string lines() const override {
    std::string result;
    for (const auto& [kernel, num_threads] : num_threads_)
      result += fmt::format("{} {}\n", kernel, num_threads);
    return result;
  }

 private:
  std::map<std::string, int> num_threads_;
};

}  // namespace

std::unique_ptr<ListingDevice> make_listing_device() {
  return std::make_unique<Listing>();
}

}  // namespace pagoda::metal_on_cuda
