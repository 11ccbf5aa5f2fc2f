#include "backend/cuda/staging.h"

#include <algorithm>
#include <utility>

namespace pagoda::cuda {
namespace {

constexpr std::size_t kBlockBytes = std::size_t{1} << 20;
constexpr std::size_t kAlignment = 64;

constexpr std::size_t round_up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

}  // namespace

Staging::~Staging() {
  device_->make_current();
  for (const auto* const blocks : {&open_, &in_flight_, &free_}) {
    for (const Block& block : *blocks) (void)device_->driver().release_host(block.base);
  }
}

Result<std::byte*> Staging::take(std::size_t bytes) {
  const std::size_t size = round_up(std::max<std::size_t>(bytes, 1), kAlignment);
  if (open_.empty() || open_.back().size - open_.back().used < size) {
    const auto found = std::find_if(free_.begin(), free_.end(),
                                    [size](const Block& block) { return block.size >= size; });
    if (found != free_.end()) {
      open_.push_back(*found);
      free_.erase(found);
    } else {
      Block block{.size = round_up(size, kBlockBytes)};
      void* base = nullptr;
      device_->make_current();
      const CuResult result = device_->driver().allocate_host(&base, block.size);
      PAGODA_RETURN_IF_ERROR(device_->driver().status_of(
          result, fmt::format("pinning {} bytes of memory", block.size)));
      block.base = static_cast<std::byte*>(base);
      open_.push_back(block);
    }
  }
  Block& block = open_.back();
  std::byte* const place = block.base + block.used;
  block.used += size;
  taken_bytes_ += size;
  return place;
}

void Staging::hand_over(std::uint64_t evaluation) {
  for (Block& block : open_) {
    block.evaluation = evaluation;
    in_flight_.push_back(block);
  }
  open_.clear();
  taken_bytes_ = 0;
}

void Staging::set_done(std::uint64_t evaluation) {
  const auto first_left =
      std::find_if(in_flight_.begin(), in_flight_.end(),
                   [evaluation](const Block& block) { return block.evaluation > evaluation; });
  for (auto block = in_flight_.begin(); block != first_left; ++block) {
    block->used = 0;
    free_.push_back(*block);
  }
  in_flight_.erase(in_flight_.begin(), first_left);
}

}  // namespace pagoda::cuda
