// CacheEvents: which full blocks the prefix cache has come to hold and has given up, in order, for
// routers that send a prompt where its beginning is.
//
// The engine's thread adds, others read: thread-safe. The latest events are kept; who has missed
// older ones gets the blocks that are held now instead.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "core/sha256.h"

namespace pagoda {

// A block is named by its digest, as prefix_cache.h has it; its parent's is that of the block before
// it, or of a scope.
struct CacheEvent {
  Sha256Digest digest = {};
  Sha256Digest parent = {};
  bool is_removal = false;
};

class CacheEvents {
 public:
  static constexpr std::size_t kMaxKept = 16384;

  // Counts events from a number that is drawn, below 2^52, so that a reader who goes on after a
  // restart is known by its number.
  CacheEvents();

  // Sets the parent of prompts' first blocks where neither client nor request has a cache of its
  // own.
  void begin(const Sha256Digest& root);
  void add_stored(const Sha256Digest& digest, const Sha256Digest& parent);
  void add_removed(const Sha256Digest& digest);

  struct Page {
    Sha256Digest root = {};
    std::uint64_t next = 0;  // what to ask for next
    bool is_whole = false;   // events are of all blocks held now, in no order; else what is new
    std::vector<CacheEvent> events;
  };
  // Returns what has come since a page whose `next` was `after`; everything for 0, or where that is
  // no longer known.
  Page since(std::uint64_t after) const;

 private:
  void add(const CacheEvent& event);

  mutable std::mutex mutex_;
  Sha256Digest root_ = {};
  std::deque<CacheEvent> kept_;  // the latest; the last one's number is next_ - 1
  std::uint64_t next_;
  std::unordered_map<Sha256Digest, Sha256Digest, Sha256DigestHash> held_;  // parents, by digest
};

}  // namespace pagoda
