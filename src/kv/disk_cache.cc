#include "kv/disk_cache.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "core/check.h"
#include "core/clock.h"
#include "core/start_thread.h"
#include "kv/block_file.h"

namespace pagoda {
namespace {

constexpr std::chrono::seconds kFirstLook(1);  // how long a start waits for the list of files
// The engine waits no longer than this for the thread's work on one file.
constexpr double kMostSecondsOfFile = 2;
constexpr std::int64_t kLoadedBytesPerStep = 8 << 20;  // takes some milliseconds to copy
constexpr std::size_t kMaxUsed = 4096;

}  // namespace

DiskCache::DiskCache(const DiskCacheOptions& options, BlockMemory memory,
                     std::unique_ptr<BlockFiles> files, const Clock& clock)
    : options_(options),
      memory_(std::move(memory)),
      block_file_bytes_(block_file_size(options.block_size, memory_.num_bytes())),
      clock_(clock),
      scope_digits_(to_hex(options.scope)),
      files_(std::move(files)) {
  thread_ = start_thread([this] { run(); });
  Lock lock(mutex_);
  progress_.wait_for(lock, kFirstLook, [this] { return has_looked_; });
}

DiskCache::~DiskCache() {
  {
    const std::lock_guard lock(mutex_);
    stopping_ = true;
    work_.notify_one();
  }
  thread_.join();
}

std::string DiskCache::name_of(const Sha256Digest& digest) const {
  const std::string digits = to_hex(digest);
  return scope_digits_ + "/" + digits.substr(0, 2) + "/" + digits;
}

DiskCache::File DiskCache::take_file() {
  File file;
  if (!spare_files_.empty()) {
    file = std::move(spare_files_.back());
    spare_files_.pop_back();
  }
  return file;
}

void DiskCache::give_back(File file) {
  spare_files_.push_back(std::move(file));
}

void DiskCache::store(int block_id, const Sha256Digest& digest, std::span<const int> tokens) {
  File file;
  {
    const std::lock_guard lock(mutex_);
    if (std::ranges::find(queue_, digest, &QueuedBlock::digest) != queue_.end()) return;
    if (held_.contains(digest)) {
      if (used_.size() < kMaxUsed) used_.push_back(digest);
      work_.notify_one();
      return;
    }
    if (num_queued_bytes_ + file_bytes() > options_.max_queue_bytes) {
      ++counters_.num_dropped;
      return;
    }
    file = take_file();
  }
  file.resize(file_bytes());
  begin_block_file({.scope = options_.scope, .digest = digest}, tokens, file);
  memory_.read(block_id, block_file_bytes(file, tokens.size()));
  const std::lock_guard lock(mutex_);
  num_queued_bytes_ += file_bytes();
  queue_.push_back({.digest = digest, .file = std::move(file)});
  work_.notify_one();
}

bool DiskCache::wait_for_room() {
  Lock lock(mutex_);
  while (num_queued_bytes_ + file_bytes() > options_.max_queue_bytes) {
    if (queue_.empty() || is_stuck()) return false;
    progress_.wait_for(lock, std::chrono::milliseconds(100));
  }
  return true;
}

bool DiskCache::is_stuck() const {
  return began_ && seconds_between(*began_, clock_.now()) > kMostSecondsOfFile;
}

int DiskCache::num_held(std::span<const Sha256Digest> digests) const {
  const std::lock_guard lock(mutex_);
  const auto end = std::find_if(digests.begin(), digests.end(),
                                [this](const auto& digest) { return !held_.contains(digest); });
  return static_cast<int>(end - digests.begin());
}

BlockTier::FetchId DiskCache::begin_fetch(std::span<const Sha256Digest> digests,
                                          std::span<const int> tokens) {
  const std::lock_guard lock(mutex_);
  const FetchId id = next_id_++;
  Fetch& fetch = fetches_[id];
  fetch.digests.assign(digests.begin(), digests.end());
  fetch.tokens.assign(tokens.begin(), tokens.end());
  fetch.used_ns = unix_time_ns();
  work_.notify_one();
  return id;
}

BlockTier::Arrival DiskCache::arrival(FetchId id) {
  const std::lock_guard lock(mutex_);
  Fetch& fetch = fetches_.at(id);
  if (!fetch.files.empty()) return Arrival::kHere;
  if (fetch.ended || fetch.num_taken == fetch.digests.size()) return Arrival::kNever;
  if (!is_stuck()) return Arrival::kAwaited;
  fetch.ended = true;
  ++counters_.num_failed;
  return Arrival::kNever;
}

void DiskCache::load(FetchId id, int block_id) {
  File file;
  {
    const std::lock_guard lock(mutex_);
    Fetch& fetch = fetches_.at(id);
    PAGODA_CHECK(!fetch.files.empty(), "[disk cache] a block is loaded before it has come");
    file.swap(fetch.files.front());
  }
  memory_.write(block_id, block_file_bytes(file, options_.block_size));
  const std::lock_guard lock(mutex_);
  Fetch& fetch = fetches_.at(id);
  fetch.files.front().swap(file);
  drop_first(fetch);
}

void DiskCache::pass(FetchId id) {
  const std::lock_guard lock(mutex_);
  Fetch& fetch = fetches_.at(id);
  if (!fetch.files.empty()) {
    drop_first(fetch);
  } else if (fetch.num_taken < fetch.digests.size()) {
    ++fetch.num_taken;
  }
}

// Drops the first of the files that have been read, and counts its block as taken.
void DiskCache::drop_first(Fetch& fetch) {
  give_back(std::move(fetch.files.front()));
  fetch.files.pop_front();
  num_ahead_bytes_ -= file_bytes();
  ++fetch.num_taken;
  work_.notify_one();
}

void DiskCache::end_fetch(FetchId id) {
  const std::lock_guard lock(mutex_);
  Fetch& fetch = fetches_.at(id);
  while (!fetch.files.empty()) drop_first(fetch);
  fetches_.erase(id);
}

int DiskCache::num_loads_per_step() const {
  return static_cast<int>(std::max<std::int64_t>(
      kLoadedBytesPerStep / static_cast<std::int64_t>(memory_.num_bytes()), 1));
}

BlockTierCounters DiskCache::counters() const {
  const std::lock_guard lock(mutex_);
  return counters_;
}

// Returns the first fetch that has a file to read, if there is room for the file.
std::optional<BlockTier::FetchId> DiskCache::next_fetch() const {
  if (stopping_) return std::nullopt;
  if (num_ahead_bytes_ > 0 && num_ahead_bytes_ + file_bytes() > options_.max_queue_bytes)
    return std::nullopt;
  for (const auto& [id, fetch] : fetches_) {
    if (!fetch.ended && fetch.next_read() < fetch.digests.size()) return id;
  }
  return std::nullopt;
}

}  // namespace pagoda
