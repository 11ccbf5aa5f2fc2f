// CacheEvents: the full blocks that the prefix cache has come to hold and has given up, in order.
// Routers read them to send a prompt where its prefix is.
//
// A reader that knows the parent of a prompt's first block, its root, can try guesses of prompts on
// the digests of their blocks. So a reader is told of the blocks of one root: its owner's, without a salt.
//
// The engine's thread adds, others read: thread-safe. The latest events are kept, of all roots
// together; a reader that has missed older ones gets the blocks that are held now instead.
#pragma once

#include <cstdint>
#include <deque>
#include <mutex>
#include <string_view>
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

  // Sets the model of prefix_scope().
  void begin(const Sha256Digest& model);
  // Adds a block; root: the digest of its scope.
  void add_stored(const Sha256Digest& digest, const Sha256Digest& parent, const Sha256Digest& root);
  void add_removed(const Sha256Digest& digest);

  struct Page {
    Sha256Digest root = {};  // of the owner's requests without a salt
    std::uint64_t next = 0;  // what to ask for next
    bool is_whole = false;   // events are of all blocks held now, in no order; else what is new
    std::vector<CacheEvent> events;  // under this root alone
  };
  // Returns what has come of an owner's blocks since a page whose `next` was `after`; everything for
  // 0, or where that is no longer known.
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
  std::deque<RootedEvent> kept_;  // the latest; the last one's number is next_ - 1
  std::uint64_t next_;
  std::unordered_map<Sha256Digest, Held, Sha256DigestHash> held_;  // by digest
};

}  // namespace pagoda
