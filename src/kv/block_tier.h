// BlockTier: the interface of the storage below the prefix cache: full blocks that leave the cache
// are stored there, and can be fetched again. kv/disk_cache.h is the implementation.
//
//   evicted, or kept to the end ── store() ──▶ tier
//   num_held() ──▶ begin_fetch() ──▶ arrival() ... load() ... ──▶ end_fetch()
//
// No call waits for a device, except wait_for_room(). A block is identified by its digest, which
// covers all tokens up to its end and the scope (kv/prefix_cache.h).
//
// Called on the engine thread.
#pragma once

#include <cstdint>
#include <span>

#include "core/sha256.h"

namespace pagoda {

// Counters for /metrics; they only grow, except num_bytes.
struct BlockTierCounters {
  std::uint64_t num_written = 0;  // blocks
  std::uint64_t num_dropped = 0;  // blocks that came too fast, or that the disk refused
  std::uint64_t num_read = 0;     // blocks
  // reads of blocks that were wrong, incomplete, unreadable or too late
  std::uint64_t num_failed = 0;
  std::uint64_t num_evicted_files = 0;
  std::int64_t num_bytes = 0;  // size of the files, all scopes together
};

class BlockTier {
 public:
  using FetchId = std::uint64_t;
  enum class Arrival : std::uint8_t {
    kAwaited,
    kHere,
    kNever,  // all have been taken, or the rest is not available
  };

  virtual ~BlockTier() = default;

  // Copies a block that no step writes any more. Drops it if too many wait to be written.
  virtual void store(int block_id, const Sha256Digest& digest, std::span<const int> tokens) = 0;
  // Waits until a block can be stored without being dropped. False: the device takes none. Called
  // only at the engine's end.
  virtual bool wait_for_room() = 0;

  // Returns how many of these blocks, from the first on, the tier has without a gap.
  virtual int num_held(std::span<const Sha256Digest> digests) const = 0;
  // Begins to fetch blocks. tokens: the tokens of all blocks, one block's after another's.
  virtual FetchId begin_fetch(std::span<const Sha256Digest> digests,
                              std::span<const int> tokens) = 0;
  // Returns whether the next block of a fetch has arrived.
  virtual Arrival arrival(FetchId id) = 0;
  // Writes the next block's bytes into a block that no step reads or writes, and advances to the
  // one after it. REQUIRES: arrival(id) is kHere.
  virtual void load(FetchId id, int block_id) = 0;
  // Skips the next block, because another sequence has computed it.
  virtual void pass(FetchId id) = 0;
  virtual void end_fetch(FetchId id) = 0;
  // Returns how many blocks may be loaded between two steps without delaying them.
  virtual int num_loads_per_step() const = 0;

  virtual BlockTierCounters counters() const = 0;
};

}  // namespace pagoda
