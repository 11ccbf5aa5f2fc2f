// The disk cache's thread: it reads files for fetches, writes the queued blocks, and removes the
// least recently used files.
#include <algorithm>
#include <chrono>
#include <utility>

#include "core/clock.h"
#include "core/log.h"
#include "core/machine.h"
#include "kv/block_file.h"
#include "kv/disk_cache.h"

namespace pagoda {
namespace {

// Time that the reads of a fetch may take, plus the time for each block that has arrived. The
// latter is about what a block of 16 tokens of a small model takes to compute.
constexpr double kPatienceSeconds = 1, kSecondsOfBlock = 0.02;
// Engines that share a folder leave an eighth of it free when they list its files. Each of them
// lists the files again before it has written a sixteenth.
constexpr std::int64_t kPartLeftFree = 8, kPartUnlooked = 16;
// an unfinished file of this age has no writer
constexpr std::int64_t kUnfinishedForNs = 60'000'000'000;
constexpr std::int64_t kNsBetweenBlocks = 1000;

bool is_unfinished(const BlockFileEntry& entry) {
  return entry.name.size() - entry.name.rfind('/') - 1 != 2 * sizeof(Sha256Digest);
}

// Returns the digest in a block file's name.
Sha256Digest digest_of(const std::string& name) {
  const auto value = [](char digit) { return digit <= '9' ? digit - '0' : digit - 'a' + 10; };
  Sha256Digest digest;
  const std::size_t first = name.rfind('/') + 1;
  for (std::size_t i = 0; i < digest.size(); ++i) {
    digest[i] =
        static_cast<std::uint8_t>(value(name[first + 2 * i]) * 16 + value(name[first + 2 * i + 1]));
  }
  return digest;
}

}  // namespace

void DiskCache::run() {
  give_way();
  (void)look_at_files(/*num_bytes_wanted=*/0);  // the next write reports the same error
  Lock lock(mutex_);
  has_looked_ = true;
  progress_.notify_all();
  while (true) {
    work_.wait(lock, [this] {
      return stopping_ || !queue_.empty() || !used_.empty() || next_fetch().has_value();
    });
    // Reads go first, because a sequence waits for them.
    if (const std::optional<FetchId> id = next_fetch()) {
      read_next(*id, lock);
    } else if (!queue_.empty()) {
      write_next(lock);
    } else if (!used_.empty()) {
      mark_used(lock);
    } else if (stopping_) {
      return;
    }
    progress_.notify_all();
  }
}

void DiskCache::read_next(FetchId id, Lock& lock) {
  const std::size_t number = fetches_.at(id).next_read();
  const Sha256Digest digest = fetches_.at(id).digests[number];
  const std::int64_t used_ns = fetches_.at(id).used_ns;
  const auto tokens_of =
      std::span(fetches_.at(id).tokens).subspan(number * options_.block_size, options_.block_size);
  const std::vector<int> tokens(tokens_of.begin(), tokens_of.end());
  File file = take_file();
  const Clock::TimePoint start = clock_.now();
  began_ = start;
  lock.unlock();
  const std::string name = name_of(digest);
  const Status status = read_file(name, digest, tokens, file);
  // Parents get a later time of use than their children, so that they stay longer.
  if (status.ok())
    files_->mark_used(name, used_ns - static_cast<std::int64_t>(number) * kNsBetweenBlocks);
  lock.lock();
  began_.reset();
  counters_.num_bytes = num_file_bytes_;
  if (!status.ok()) held_.erase(digest);
  if (status.ok()) ++counters_.num_read;
  if (!status.ok() && status.code() != StatusCode::kNotFound) ++counters_.num_failed;
  const auto found = fetches_.find(id);
  // The fetch may have ended meanwhile.
  if (found == fetches_.end() || found->second.ended || found->second.next_read() != number)
    return give_back(std::move(file));
  Fetch& fetch = found->second;
  if (!status.ok()) {
    fetch.ended = true;
    return give_back(std::move(file));
  }
  fetch.files.push_back(std::move(file));
  num_ahead_bytes_ += file_bytes();
  fetch.read_s += seconds_between(start, clock_.now());
  if (fetch.read_s > kPatienceSeconds + static_cast<double>(number) * kSecondsOfBlock &&
      fetch.next_read() < fetch.digests.size()) {
    fetch.ended = true;
    ++counters_.num_failed;
  }
}

// Reads a file and checks it. Removes a file that is wrong.
Status DiskCache::read_file(const std::string& name, const Sha256Digest& digest,
                            std::span<const int> tokens, File& file) {
  Status status = files_->read(name, file_bytes(), file);
  if (status.ok()) {
    status = read_block_file(file, {.scope = options_.scope, .digest = digest}, tokens,
                             memory_.num_bytes())
                 .status();
  }
  if (status.ok() || status.code() == StatusCode::kNotFound) return status;
  log_warning("[disk cache] {}: {}", name, status.message());
  if (files_->remove(name).ok()) num_file_bytes_ -= static_cast<std::int64_t>(file_bytes());
  return status;
}

void DiskCache::write_next(Lock& lock) {
  QueuedBlock& block = queue_.front();
  began_ = clock_.now();
  lock.unlock();
  const Status status = write_file(block.digest, block.file);
  if (!status.ok() && !std::exchange(has_warned_, true))
    log_warning("[disk cache] blocks are dropped: {}", status.message());
  if (status.ok()) has_warned_ = false;
  lock.lock();
  began_.reset();
  counters_.num_bytes = num_file_bytes_;
  ++(status.ok() ? counters_.num_written : counters_.num_dropped);
  if (status.ok()) held_.insert(block.digest);
  num_queued_bytes_ -= file_bytes();
  give_back(std::move(block.file));
  queue_.pop_front();
}

Status DiskCache::write_file(const Sha256Digest& digest, File& file) {
  const auto size = static_cast<std::int64_t>(file.size());
  end_block_file(file);
  PAGODA_RETURN_IF_ERROR(make_room(size));
  PAGODA_RETURN_IF_ERROR(files_->write(name_of(digest), file));
  num_unlooked_bytes_ += size;
  num_file_bytes_ += size;
  return ok_status();
}

// Updates the time of last use of files whose blocks were stored again.
void DiskCache::mark_used(Lock& lock) {
  const std::vector<Sha256Digest> used = std::exchange(used_, {});
  lock.unlock();
  for (const Sha256Digest& digest : used) files_->mark_used(name_of(digest), unix_time_ns());
  lock.lock();
}

// Checks that there is room for num_bytes. Lists the files again before other engines can have
// filled the folder.
Status DiskCache::make_room(std::int64_t num_bytes) {
  if (num_bytes > options_.max_bytes) {
    return resource_exhausted(
        "[kv cache] prefix-cache-dir-bytes: expected {} at least, a block's, got {}", num_bytes,
        options_.max_bytes);
  }
  if (!is_listed_ || num_unlooked_bytes_ + num_bytes > options_.max_bytes / kPartUnlooked)
    PAGODA_RETURN_IF_ERROR(look_at_files(num_bytes));
  if (num_file_bytes_ + num_bytes <= options_.max_bytes) return ok_status();
  return resource_exhausted("[disk cache] {} bytes of files cannot be removed", num_file_bytes_);
}

// Counts the files, and removes the least recently used ones until there is room: an eighth for
// other engines' files, or num_bytes_wanted if that is more.
Status DiskCache::look_at_files(std::int64_t num_bytes_wanted) {
  is_listed_ = false;
  PAGODA_ASSIGN_OR_RETURN(std::vector<BlockFileEntry> entries, files_->list());
  is_listed_ = true;
  num_unlooked_bytes_ = 0;
  std::ranges::sort(entries, {}, &BlockFileEntry::used_ns);
  num_file_bytes_ = 0;
  for (const BlockFileEntry& entry : entries) num_file_bytes_ += entry.num_bytes;
  const std::int64_t most =
      options_.max_bytes - std::max(options_.max_bytes / kPartLeftFree, num_bytes_wanted);
  const std::int64_t unfinished_since_ns = unix_time_ns() - kUnfinishedForNs;
  std::unordered_set<Sha256Digest, Sha256DigestHash> held;
  std::uint64_t num_evicted = 0;
  for (const BlockFileEntry& entry : entries) {
    const bool is_left_over = is_unfinished(entry) && entry.used_ns < unfinished_since_ns;
    if ((is_left_over || num_file_bytes_ > most) && files_->remove(entry.name).ok()) {
      num_file_bytes_ -= entry.num_bytes;
      if (!is_unfinished(entry)) ++num_evicted;
    } else if (!is_unfinished(entry) && entry.name.starts_with(scope_digits_)) {
      held.insert(digest_of(entry.name));
    }
  }
  const std::lock_guard lock(mutex_);
  held_.swap(held);
  counters_.num_evicted_files += num_evicted;
  counters_.num_bytes = num_file_bytes_;
  return ok_status();
}

}  // namespace pagoda
