// DiskCache: the tier below the prefix cache that is a folder of files, a block each
// (kv/block_file.h).
//
// One thread of its own reads and writes them. The engine's thread only copies a block to a queue,
// or from the files that have been read. Where the queue is full, a block is dropped and counted.
// (A tier below the cache in memory: Gao et al., "CachedAttention", USENIX ATC 2024,
// arXiv:2403.19708.)
//
//   store() ──▶ queue, 64 MiB ──▶ thread ──▶ a file, renamed when it is whole
//   begin_fetch() ──▶ thread ──▶ read and checked, 64 MiB ahead ──▶ load()
//
// A file that cannot be read, or whose bytes are not right, is removed and counted; its sequence
// computes. So it does where files come more slowly than it could compute.
//
// The folder holds max_bytes, of all scopes together: the files used least recently go. Several
// engines may share it, each of which counts what the others have written from time to time, and
// leaves room for it; a file that another one has removed is a miss.
//
// The calls of BlockTier are the engine thread's; counters() is thread-safe.
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
  std::size_t block_size = 0;                           // tokens
  std::size_t max_queue_bytes = std::size_t{64} << 20;  // of blocks to be written; and read ahead
};

class DiskCache final : public BlockTier {
 public:
  // Starts the thread, and waits for it to have looked at the files, but not for long.
  DiskCache(const DiskCacheOptions& options, BlockMemory memory, std::unique_ptr<BlockFiles> files,
            const Clock& clock = Clock::system());
  ~DiskCache() override;  // writes what is in the queue
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
    File file;  // all but its sum
  };
  struct Fetch {
    std::vector<Sha256Digest> digests;
    std::vector<int> tokens;  // [digests, block_size]
    std::size_t num_taken = 0;
    std::deque<File> files;  // read, from number num_taken on
    bool ended = false;      // no more will be read
    double read_s = 0;
    std::int64_t used_ns = 0;  // when it began; since 1970

    std::size_t next_read() const { return num_taken + files.size(); }
  };
  using Lock = std::unique_lock<std::mutex>;

  std::string name_of(const Sha256Digest& digest) const;
  std::size_t file_bytes() const { return block_file_bytes_; }
  // Takes memory for a file. REQUIRES: mutex_, as do the four below.
  File take_file();
  void give_back(File file);
  void drop_first(Fetch& fetch);
  bool is_stuck() const;
  std::optional<FetchId> next_fetch() const;

  // Runs the thread, and so do those below.
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

  // The thread's own.
  const std::unique_ptr<BlockFiles> files_;
  bool is_listed_ = false;               // it has seen which files there are
  std::int64_t num_file_bytes_ = 0;      // of all scopes, as far as it knows
  std::int64_t num_unlooked_bytes_ = 0;  // written since it looked at the files
  bool has_warned_ = false;              // of a disk that takes nothing, since it took something

  // Between the threads.
  mutable std::mutex mutex_;
  std::condition_variable work_;      // something for the thread
  std::condition_variable progress_;  // something that it has done
  std::deque<QueuedBlock> queue_;     // the first may be being written
  std::size_t num_queued_bytes_ = 0;  // with what is being written
  std::vector<Sha256Digest> used_;    // blocks that the cache had while their files were there
  std::unordered_set<Sha256Digest, Sha256DigestHash> held_;  // files of the scope
  std::map<FetchId, Fetch> fetches_;                         // in their order
  FetchId next_id_ = 0;
  std::size_t num_ahead_bytes_ = 0;  // of files that have been read and not taken
  std::vector<File> spare_files_;
  std::optional<Clock::TimePoint> began_;  // what the thread does with a file
  bool has_looked_ = false;
  bool stopping_ = false;
  BlockTierCounters counters_;

  std::thread thread_;
};

}  // namespace pagoda
