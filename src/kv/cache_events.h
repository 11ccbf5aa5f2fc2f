// CacheEvents: the full blocks that the prefix cache has added and removed, in order. Routers read
// them to send a prompt to the engine that has its prefix.
//
// A reader that knows the parent of a prompt's first block, the root, can guess prompts and compare
// the digests of their blocks. So a reader gets only the blocks of one root: its owner's, without a
// salt.
//
// The engine's thread adds events and others read them: thread-safe. The latest events of all roots
// together are kept. A reader that has missed older ones gets all blocks that are held now instead.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/sha256.h"

namespace pagoda {

// A block is identified by its digest (kv/prefix_cache.h). Its parent is the digest of the block
// before it, or of the scope for a first block.
struct CacheEvent {
  Sha256Digest digest = {};
  Sha256Digest parent = {};
  bool is_removal = false;
};

class CacheEvents {
 public:
  static constexpr std::size_t kMaxKept = 16384;

  // Starts the count of events at a random number below 2^52. So a reader that continues after a
  // restart of the engine is recognised by its number.
  CacheEvents();

  // Sets the model for prefix_scope().
  void begin(const Sha256Digest& model);
  // Adds an event of a stored block. root: the digest of its scope.
  void add_stored(const Sha256Digest& digest, const Sha256Digest& parent, const Sha256Digest& root);
  void add_removed(const Sha256Digest& digest);

  struct Page {
    Sha256Digest root = {};  // root of the owner's requests without a salt
    std::uint64_t next = 0;  // argument of the next since()
    // True: events are all blocks held now, in no order. False: events are those since `after`.
    bool is_whole = false;
    std::vector<CacheEvent> events;  // of this root only
  };
  // Returns the events of an owner's blocks since a page whose `next` was `after`. Returns all
  // blocks held now if `after` is 0, or if the events since then are not known.
  Page since(std::uint64_t after, std::string_view owner) const;

 private:
  struct Held {
    Sha256Digest parent = {};
    Sha256Digest root = {};
  };
  struct RootedEvent {
    CacheEvent event;
    Sha256Digest root = {};
  };
  void add(const RootedEvent& event);

  mutable std::mutex mutex_;
  Sha256Digest model_ = {};
  std::deque<RootedEvent> kept_;  // the latest events; the last one has the number next_ - 1
  std::uint64_t next_;
  std::unordered_map<Sha256Digest, Held, Sha256DigestHash> held_;  // by digest
};

}  // namespace pagoda
