#include "kv/cache_events.h"

#include <algorithm>
#include <random>
#include <utility>

namespace pagoda {

CacheEvents::CacheEvents(bool keeps_tokens) : keeps_tokens_(keeps_tokens) {
  std::random_device device;
  next_ = 1 + (static_cast<std::uint64_t>(device()) << 20 | device() >> 12);
}

void CacheEvents::begin(const Sha256Digest& model) {
  const std::lock_guard lock(mutex_);
  model_ = model;
}

void CacheEvents::add_stored(const Sha256Digest& digest, const Sha256Digest& parent,
                             const PrefixScope& scope, std::span<const int> tokens) {
  std::vector<int> kept;
  if (keeps_tokens_) kept.assign(tokens.begin(), tokens.end());
  const std::lock_guard lock(mutex_);
  held_[digest] = {.parent = parent,
                   .root = scope.digest,
                   .is_salted = scope.is_salted,
                   .number = next_,
                   .tokens = kept};
  if (!scope.is_salted) ++num_unsalted_;
  add({.event = {.digest = digest, .parent = parent},
       .root = scope.digest,
       .is_salted = scope.is_salted,
       .tokens = std::move(kept)});
}

void CacheEvents::add_removed(const Sha256Digest& digest) {
  const std::lock_guard lock(mutex_);
  const auto found = held_.find(digest);
  if (found == held_.end()) return;
  const Held& held = found->second;
  add({.event = {.digest = digest, .kind = CacheEventKind::kRemoved},
       .root = held.root,
       .is_salted = held.is_salted});
  if (!held.is_salted) --num_unsalted_;
  held_.erase(found);
}

void CacheEvents::end_clearing() {
  const std::lock_guard lock(mutex_);
  if (num_unsalted_ == 0) add({.event = {.kind = CacheEventKind::kCleared}});
}

void CacheEvents::add(RootedCacheEvent event) {
  kept_.push_back(std::move(event));
  if (kept_.size() > kMaxKept) kept_.pop_front();
  ++next_;
  added_.notify_one();
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
    const RootedCacheEvent& kept = kept_[number - oldest];
    if (kept.root == page.root) page.events.push_back(kept.event);
  }
  return page;
}

std::uint64_t CacheEvents::next() const {
  const std::lock_guard lock(mutex_);
  return next_;
}

bool CacheEvents::wait(std::uint64_t after) {
  std::unique_lock lock(mutex_);
  added_.wait(lock, [&] { return waits_end_ || next_ > after; });
  return next_ > after;
}

void CacheEvents::end_waits() {
  const std::lock_guard lock(mutex_);
  waits_end_ = true;
  added_.notify_all();
}

CacheEvents::Backlog CacheEvents::take(std::uint64_t after, std::size_t most) const {
  const std::lock_guard lock(mutex_);
  const std::uint64_t oldest = next_ - kept_.size();
  if (after < oldest) return {.next = next_, .is_whole = true, .events = all_held()};
  Backlog backlog = {.next = std::min(next_, after + most)};
  for (std::uint64_t number = after; number < backlog.next; ++number) {
    const RootedCacheEvent& kept = kept_[number - oldest];
    if (!kept.is_salted) backlog.events.push_back(kept);
  }
  return backlog;
}

// Returns blocks in the order in which they were stored, so that parents come first.
std::vector<RootedCacheEvent> CacheEvents::all_held() const {
  std::vector<std::pair<std::uint64_t, RootedCacheEvent>> found;
  for (const auto& [digest, held] : held_) {
    if (held.is_salted) continue;
    found.emplace_back(held.number,
                       RootedCacheEvent{.event = {.digest = digest, .parent = held.parent},
                                        .root = held.root,
                                        .tokens = held.tokens});
  }
  std::ranges::sort(found, {}, [](const auto& each) { return each.first; });
  std::vector<RootedCacheEvent> events;
  for (auto& [number, event] : found) events.push_back(std::move(event));
  return events;
}

Sha256Digest CacheEvents::plain_root() const {
  const std::lock_guard lock(mutex_);
  return prefix_scope(model_, /*owner=*/"", /*salt=*/"").digest;
}

}  // namespace pagoda
