// BlockTier: where full blocks go that leave the prefix cache, and come back from. The bookkeeping
// of blocks and the scheduler know this much of it; kv/disk_cache.h is the one that serves.
//
//   evicted, or kept to the end ── store() ──▶ tier
//   num_held() ──▶ begin_fetch() ──▶ arrival() ... load() ... ──▶ end_fetch()
//
// No call waits for a device, but wait_for_room(). A block is known by its digest, which stands for
// all tokens up to its end and for the scope (kv/prefix_cache.h).
//
// Belongs to the engine thread, as seen from here.
#pragma once

#include <cstdint>
#include <span>

#include "core/sha256.h"

namespace pagoda {

// Counters for /metrics; but for num_bytes they only grow.
struct BlockTierCounters {
  std::uint64_t num_written = 0;  // blocks
  std::uint64_t num_dropped = 0;  // blocks that came too fast, or that the disk did not take
  std::uint64_t num_read = 0;     // blocks
  std::uint64_t num_failed = 0;   // reads of blocks that were wrong, torn, unreadable or too late
  std::uint64_t num_evicted_files = 0;
  std::int64_t num_bytes = 0;  // of the files, all scopes together
};

class BlockTier {
 public:
  using FetchId = std::uint64_t;
  enum class Arrival : std::uint8_t {
    kAwaited,
    kHere,
    kNever,  // all have been taken, or what is left cannot be had
  };

  virtual ~BlockTier() = default;

  // Copies a block that no step writes any more, or drops it where too many wait to be written.
  virtual void store(int block_id, const Sha256Digest& digest, std::span<const int> tokens) = 0;
  // Waits until a block can be stored without being dropped; false: the device takes none. Called
  // at the engine's end alone.
  virtual bool wait_for_room() = 0;

  // Returns how many of these blocks the tier has, from the first on up to one that it lacks.
  virtual int num_held(std::span<const Sha256Digest> digests) const = 0;
  // Begins to fetch blocks. tokens: theirs, one block's behind the other's.
  virtual FetchId begin_fetch(std::span<const Sha256Digest> digests,
                              std::span<const int> tokens) = 0;
  // Returns whether the next block of a fetch has come.
  virtual Arrival arrival(FetchId id) = 0;
  // Puts the next block's bytes into a block that no step reads or writes. The one behind it is the
  // next then. REQUIRES: arrival(id) is kHere.
  virtual void load(FetchId id, int block_id) = 0;
  // Passes the next block over: another sequence has computed it.
  virtual void pass(FetchId id) = 0;
  virtual void end_fetch(FetchId id) = 0;
  // Returns how many blocks may be loaded between two steps without holding them up.
  virtual int num_loads_per_step() const = 0;

  virtual BlockTierCounters counters() const = 0;
};

}  // namespace pagoda
