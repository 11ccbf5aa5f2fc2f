// CacheEvents: the full blocks that the prefix cache has added and removed, in order. Routers read
// them to send a prompt to the engine that has its prefix.
//
// A reader that knows the parent of a prompt's first block, the root, can guess prompts and compare
// the digests of their blocks. So a reader gets only the blocks of one root: its owner's, without a
// salt.
//
// A publisher tells the operator's routers the blocks of all roots, but for those under a salt.
//
// The engine's thread adds events and others read them: thread-safe. The latest events of all roots
// together are kept. A reader that has missed older ones gets all blocks that are held now instead.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <mutex>
#include <span>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "core/sha256.h"
#include "kv/prefix_scope.h"

namespace pagoda {

enum class CacheEventKind { kStored, kRemoved, kCleared };

// A block is identified by its digest (kv/prefix_cache.h). Its parent is the digest of the block
// before it, or of the scope for a first block.
struct CacheEvent {
  Sha256Digest digest = {};
  Sha256Digest parent = {};
  CacheEventKind kind = CacheEventKind::kStored;
};

// An event as publishers need it. kCleared: no block without a salt is held any more.
struct RootedCacheEvent {
  CacheEvent event;
  Sha256Digest root = {};
  bool is_salted = false;
  std::vector<int> tokens = {};  // the block's, if the events keep tokens
};

class CacheEvents {
 public:
  static constexpr std::size_t kMaxKept = 16384;

  // Starts the count of events at a random number below 2^52. So a reader that continues after a
  // restart of the engine is recognised by its number. keeps_tokens: for take().
  explicit CacheEvents(bool keeps_tokens = false);

  // Sets the model for prefix_scope().
  void begin(const Sha256Digest& model);
  // Adds an event of a stored block, which has these tokens.
  void add_stored(const Sha256Digest& digest, const Sha256Digest& parent, const PrefixScope& scope,
                  std::span<const int> tokens);
  void add_removed(const Sha256Digest& digest);
  // Adds kCleared, behind removals, if they were all.
  void end_clearing();

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

  // The rest is for one publisher.
  struct Backlog {
    std::uint64_t next = 0;  // argument of the next call
    // True: events are all blocks held now, parents first, whatever was told before.
    bool is_whole = false;
    std::vector<RootedCacheEvent> events;  // without those under a salt
  };
  std::uint64_t next() const;  // the number of the event that comes next
  // Waits until there are events from the number `after` on. False: there are none, and end_waits()
  // was called.
  bool wait(std::uint64_t after);
  void end_waits();
  // Returns up to `most` events from the number `after` on, or all blocks held now if the events
  // are not known any more.
  Backlog take(std::uint64_t after, std::size_t most) const;
  // Returns the root of requests that have neither an owner nor a salt.
  Sha256Digest plain_root() const;

 private:
  struct Held {
    Sha256Digest parent = {};
    Sha256Digest root = {};
    bool is_salted = false;
    std::uint64_t number = 0;  // of the event
    std::vector<int> tokens;
  };
  void add(RootedCacheEvent event);
  std::vector<RootedCacheEvent> all_held() const;

  const bool keeps_tokens_;
  mutable std::mutex mutex_;
  std::condition_variable added_;
  bool waits_end_ = false;
  std::size_t num_unsalted_ = 0;  // blocks held
  Sha256Digest model_ = {};
  std::deque<RootedCacheEvent> kept_;  // the latest; the last one has the number next_ - 1
  std::uint64_t next_;
  std::unordered_map<Sha256Digest, Held, Sha256DigestHash> held_;  // by digest
};

}  // namespace pagoda
