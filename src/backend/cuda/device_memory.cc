#include "backend/cuda/device_memory.h"

#include <algorithm>
#include <utility>

namespace pagoda::cuda {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{64} << 20;
constexpr std::size_t kExpectedHoles = 256;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (std::max<std::size_t>(bytes, 1) + unit - 1) / unit * unit;
}

class PersistentBuffer final : public DeviceBuffer {
 public:
  PersistentBuffer(std::shared_ptr<Device> device, Address address, std::size_t size)
      : DeviceBuffer(address, size, /*is_persistent=*/true), device_(std::move(device)) {}

 private:
  ~PersistentBuffer() override { device_->release(address()); }
  void release() override { delete this; }

  std::shared_ptr<Device> device_;
};

}  // namespace

class DeviceArena::Span final : public DeviceBuffer {
 public:
  Span(std::shared_ptr<DeviceArena> arena, Address address, std::size_t size)
      : DeviceBuffer(address, size, /*is_persistent=*/false), arena_(std::move(arena)) {}

 private:
  ~Span() override { arena_->put_back(address(), round_up(size(), kAlignment)); }
  void release() override { delete this; }

  std::shared_ptr<DeviceArena> arena_;
};

Result<BufferRef> allocate_persistent_bytes(const std::shared_ptr<Device>& device,
                                            std::size_t bytes) {
  PAGODA_ASSIGN_OR_RETURN(const Address address, device->allocate(bytes));
  return BufferRef(new PersistentBuffer(device, address, bytes));
}

DeviceArena::~DeviceArena() {
  for (const Block& block : blocks_) device_->release(block.base);
}

Result<BufferRef> DeviceArena::allocate(std::size_t bytes) {
  PAGODA_ASSIGN_OR_RETURN(const Address address, take(round_up(bytes, kAlignment)));
  return BufferRef(new Span(shared_from_this(), address, bytes));
}

Result<Address> DeviceArena::take(std::size_t size) {
  const std::lock_guard lock(mutex_);
  for (Block& block : blocks_) {
    if (const auto begin = block.holes.take(size)) return block.base + *begin;
  }
  const std::size_t block_size = round_up(size, kBlockBytes);
  PAGODA_ASSIGN_OR_RETURN(const Address base, device_->allocate(block_size));
  blocks_.push_back({base, block_size, HoleList(block_size, kExpectedHoles)});
  return base + *blocks_.back().holes.take(size);
}

void DeviceArena::put_back(Address address, std::size_t size) {
  const std::lock_guard lock(mutex_);
  for (Block& block : blocks_) {
    if (address < block.base || address - block.base >= block.size) continue;
    block.holes.put_back(static_cast<std::size_t>(address - block.base), size);
    return;
  }
}

}  // namespace pagoda::cuda
