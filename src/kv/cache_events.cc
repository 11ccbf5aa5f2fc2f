#include "kv/cache_events.h"

#include <random>

namespace pagoda {

CacheEvents::CacheEvents() {
  std::random_device device;
  next_ = 1 + (static_cast<std::uint64_t>(device()) << 20 | device() >> 12);
}

void CacheEvents::begin(const Sha256Digest& root) {
  const std::lock_guard lock(mutex_);
  root_ = root;
}

void CacheEvents::add_stored(const Sha256Digest& digest, const Sha256Digest& parent) {
  const std::lock_guard lock(mutex_);
  held_[digest] = parent;
  add({.digest = digest, .parent = parent});
}

void CacheEvents::add_removed(const Sha256Digest& digest) {
  const std::lock_guard lock(mutex_);
  held_.erase(digest);
  add({.digest = digest, .is_removal = true});
}

void CacheEvents::add(const CacheEvent& event) {
  kept_.push_back(event);
  if (kept_.size() > kMaxKept) kept_.pop_front();
  ++next_;
}

CacheEvents::Page CacheEvents::since(std::uint64_t after) const {
  const std::lock_guard lock(mutex_);
  Page page = {.root = root_, .next = next_};
  const std::uint64_t oldest = next_ - kept_.size();
  page.is_whole = after < oldest || after > next_ || after == 0;
  if (page.is_whole) {
    page.events.reserve(held_.size());
    for (const auto& [digest, parent] : held_)
      page.events.push_back({.digest = digest, .parent = parent});
  } else {
    page.events.assign(kept_.begin() + static_cast<std::ptrdiff_t>(after - oldest), kept_.end());
  }
  return page;
}

}  // namespace pagoda
