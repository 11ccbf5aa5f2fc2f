// DiskCache: a tier below the prefix cache that keeps its blocks in a folder, one file per block
// (kv/block_file.h).
//
// A thread of its own reads and writes the files. The engine's thread only copies blocks to a
// queue, or from files that have been read. If the queue is full, a block is dropped and counted.
// (A tier below the cache in memory: Gao et al., "CachedAttention", USENIX ATC 2024,
// arXiv:2403.19708.)
//
//   store() ──▶ queue, 64 MiB ──▶ thread ──▶ a file, renamed when it is whole
//   begin_fetch() ──▶ thread ──▶ read and checked, 64 MiB ahead ──▶ load()
//
// A file that cannot be read or has wrong bytes is removed and counted, and the sequence computes
// its tokens. It also computes them if files come more slowly than it could compute.
//
// The files of all scopes together take at most max_bytes: the least recently used ones are
// removed. Several engines may share the folder. Each one counts the others' files from time to
// time, and leaves room for more. A file that another engine has removed is a miss.
//
// The functions of BlockTier are called on the engine thread. counters() is thread-safe.
#pragma once

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_set>
#include <vector>

#include "core/clock.h"
#include "core/sha256.h"
#include "core/status.h"
#include "kv/block_files.h"
#include "kv/block_memory.h"
#include "kv/block_tier.h"

namespace pagoda {

struct DiskCacheOptions {
  Sha256Digest scope = {};  // what the bytes of a block depend on besides its tokens
  std::int64_t max_bytes = 0;
  std::size_t block_size = 0;  // tokens
  // Limit of the blocks that wait to be written, and also of those that are read ahead.
  std::size_t max_queue_bytes = std::size_t{64} << 20;
};

class DiskCache final : public BlockTier {
 public:
  // Starts the thread, and waits up to a second until it has listed the files.
  DiskCache(const DiskCacheOptions& options, BlockMemory memory, std::unique_ptr<BlockFiles> files,
            const Clock& clock = Clock::system());
  ~DiskCache() override;  // writes the queued blocks
  DiskCache(const DiskCache&) = delete;
  DiskCache& operator=(const DiskCache&) = delete;

  void store(int block_id, const Sha256Digest& digest, std::span<const int> tokens) override;
  bool wait_for_room() override;
  int num_held(std::span<const Sha256Digest> digests) const override;
  FetchId begin_fetch(std::span<const Sha256Digest> digests, std::span<const int> tokens) override;
  Arrival arrival(FetchId id) override;
  void load(FetchId id, int block_id) override;
  void pass(FetchId id) override;
  void end_fetch(FetchId id) override;
  int num_loads_per_step() const override;
  BlockTierCounters counters() const override;

 private:
  using File = std::vector<std::byte>;
  struct QueuedBlock {
    Sha256Digest digest = {};
    File file;  // complete except its sum
  };
  struct Fetch {
    std::vector<Sha256Digest> digests;
    std::vector<int> tokens;  // [digests, block_size]
    std::size_t num_taken = 0;
    std::deque<File> files;  // files that have been read, from number num_taken on
    bool ended = false;      // no more will be read
    double read_s = 0;
    std::int64_t used_ns = 0;  // when it began, since 1970

    std::size_t next_read() const { return num_taken + files.size(); }
  };
  using Lock = std::unique_lock<std::mutex>;

  std::string name_of(const Sha256Digest& digest) const;
  std::size_t file_bytes() const { return block_file_bytes_; }
  // Takes a buffer for a file. REQUIRES: mutex_ is held, as for the four functions below.
  File take_file();
  void give_back(File file);
  void drop_first(Fetch& fetch);
  bool is_stuck() const;
  std::optional<FetchId> next_fetch() const;

  // Runs on the thread, as do the functions below.
  void run();
  void read_next(FetchId id, Lock& lock);
  Status read_file(const std::string& name, const Sha256Digest& digest, std::span<const int> tokens,
                   File& file);
  void write_next(Lock& lock);
  Status write_file(const Sha256Digest& digest, File& file);
  void mark_used(Lock& lock);
  Status make_room(std::int64_t num_bytes);
  Status look_at_files(std::int64_t num_bytes_wanted);

  const DiskCacheOptions options_;
  const BlockMemory memory_;
  const std::size_t block_file_bytes_;
  const Clock& clock_;
  const std::string scope_digits_;

  // Used only by the thread.
  const std::unique_ptr<BlockFiles> files_;
  bool is_listed_ = false;               // the files have been listed
  std::int64_t num_file_bytes_ = 0;      // of all scopes, as last known
  std::int64_t num_unlooked_bytes_ = 0;  // written since the files were listed
  bool has_warned_ = false;              // a failed write was logged since the last success

  // Shared between the threads, under mutex_.
  mutable std::mutex mutex_;
  std::condition_variable work_;      // the thread has work
  std::condition_variable progress_;  // the thread has done something
  std::deque<QueuedBlock> queue_;     // the thread may be writing the first one
  std::size_t num_queued_bytes_ = 0;  // with the block that is being written
  std::vector<Sha256Digest> used_;    // blocks stored again: their files are marked as used
  std::unordered_set<Sha256Digest, Sha256DigestHash> held_;  // digests of the scope's files
  std::map<FetchId, Fetch> fetches_;                         // in the order of begin_fetch()
  FetchId next_id_ = 0;
  std::size_t num_ahead_bytes_ = 0;  // of files that were read but not loaded
  std::vector<File> spare_files_;
  std::optional<Clock::TimePoint> began_;  // when work on the current file began
  bool has_looked_ = false;
  bool stopping_ = false;
  BlockTierCounters counters_;

  std::thread thread_;
};

}  // namespace pagoda
