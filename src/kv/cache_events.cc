#include "kv/cache_events.h"

#include <random>

#include "kv/prefix_scope.h"

namespace pagoda {

CacheEvents::CacheEvents() {
  std::random_device device;
  next_ = 1 + (static_cast<std::uint64_t>(device()) << 20 | device() >> 12);
}

void CacheEvents::begin(const Sha256Digest& model) {
  const std::lock_guard lock(mutex_);
  model_ = model;
}

void CacheEvents::add_stored(const Sha256Digest& digest, const Sha256Digest& parent,
                             const Sha256Digest& root) {
  const std::lock_guard lock(mutex_);
  held_[digest] = {.parent = parent, .root = root};
  add({.event = {.digest = digest, .parent = parent}, .root = root});
}

void CacheEvents::add_removed(const Sha256Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(digest);
  if (found == held_.end()) return;
  add({.event = {.digest = digest, .is_removal = true}, .root = found->second.root});
  held_.erase(found);
}

void CacheEvents::add(const RootedEvent& event) {
  kept_.push_back(event);
  if (kept_.size() > kMaxKept) kept_.pop_front();
  ++next_;
}

CacheEvents::Page CacheEvents::since(std::uint64_t after, std::string_view owner) const {
  const std::lock_guard lock(mutex_);
  Page page = {.root = prefix_scope(model_, owner, /*salt=*/"").digest, .next = next_};
  const std::uint64_t oldest = next_ - kept_.size();
  page.is_whole = after < oldest || after > next_ || after == 0;
  if (page.is_whole) {
    for (const auto& [digest, held] : held_) {
      if (held.root == page.root) page.events.push_back({.digest = digest, .parent = held.parent});
    }
    return page;
  }
  for (std::uint64_t number = after; number < next_; ++number) {
    const auto& [event, root] = kept_[number - oldest];
    if (root == page.root) page.events.push_back(event);
  }
  return page;
}

}  // namespace pagoda
