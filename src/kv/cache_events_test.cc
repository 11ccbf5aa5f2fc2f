#include "kv/cache_events.h"

#include <gtest/gtest.h>

#include <map>
#include <random>

#include "kv/prefix_cache.h"

namespace pagoda {
namespace {

Sha256Digest named_digest(int number) {
  return sha256(std::to_string(number));
}

// Returns the scope in events whose begin() was not called.
PrefixScope scope_of(std::string_view owner, std::string_view salt = "") {
  return prefix_scope(Sha256Digest{}, owner, salt);
}

// A reader of pages, as a router would be.
class Reader {
 public:
  void read(const CacheEvents& events) {
    const CacheEvents::Page page = events.since(next_, "");
    if (page.is_whole) {
      held_.clear();
      ++num_whole_;
    }
    for (const CacheEvent& event : page.events) {
      if (event.kind == CacheEventKind::kRemoved) {
        EXPECT_EQ(held_.erase(event.digest), 1u);
      } else {
        EXPECT_TRUE(held_.emplace(event.digest, event.parent).second);
      }
    }
    next_ = page.next;
  }
  const std::map<Sha256Digest, Sha256Digest>& held() const { return held_; }
  int num_whole() const { return num_whole_; }

 private:
  std::map<Sha256Digest, Sha256Digest> held_;
  std::uint64_t next_ = 0;
  int num_whole_ = 0;
};

TEST(CacheEvents, WhoReadsInTimeGetsWhatIsNew) {
  CacheEvents events;
  EXPECT_EQ(events.since(0, "").root, scope_of("").digest);
  Reader reader;
  reader.read(events);
  events.add_stored(named_digest(1), named_digest(0), scope_of(""), {});
  events.add_stored(named_digest(2), named_digest(1), scope_of(""), {});
  reader.read(events);
  EXPECT_EQ(reader.held().at(named_digest(2)), named_digest(1));
  events.add_removed(named_digest(2));
  reader.read(events);
  EXPECT_EQ(reader.held().size(), 1u);
  const std::uint64_t next = events.since(0, "").next;
  EXPECT_TRUE(events.since(next, "").events.empty());
  EXPECT_FALSE(events.since(next - 3, "").is_whole);
  EXPECT_EQ(reader.num_whole(), 1);
  EXPECT_TRUE(events.since(next + 1, "").is_whole);
}

TEST(CacheEvents, AReaderOfAnotherServerGetsAllThatIsHeld) {
  CacheEvents before, after;
  Reader reader;
  before.add_stored(named_digest(1), named_digest(0), scope_of(""), {});
  reader.read(before);
  for (int i = 2; i < 100; ++i)
    after.add_stored(named_digest(i), named_digest(0), scope_of(""), {});
  reader.read(after);
  EXPECT_EQ(reader.held().size(), 98u);
  EXPECT_EQ(reader.num_whole(), 2);
}

TEST(CacheEvents, WhoIsLateGetsAllThatIsHeld) {
  CacheEvents events;
  Reader reader, late;
  events.add_stored(named_digest(-1), named_digest(0), scope_of(""), {});
  late.read(events);
  std::mt19937 random(1);
  std::map<Sha256Digest, Sha256Digest> held = {{named_digest(-1), named_digest(0)}};
  for (int i = 0; i < 3 * static_cast<int>(CacheEvents::kMaxKept); ++i) {
    if (random() % 3 == 0 && !held.empty()) {
      const Sha256Digest gone = held.begin()->first;
      held.erase(gone);
      events.add_removed(gone);
    } else {
      held[named_digest(i)] = named_digest(i - 1);
      events.add_stored(named_digest(i), named_digest(i - 1), scope_of(""), {});
    }
    if (i % 1000 == 0) reader.read(events);
  }
  reader.read(events);
  late.read(events);
  EXPECT_EQ(reader.held(), held);
  EXPECT_EQ(reader.num_whole(), 1);
  EXPECT_EQ(late.held(), held);
  EXPECT_EQ(late.num_whole(), 2);
}

// With a root a reader could guess the prompts under it.
TEST(CacheEvents, AReaderIsToldOfItsOwnBlocksAlone) {
  CacheEvents events;
  const std::vector<PrefixScope> scopes = {scope_of(""), scope_of("alice"), scope_of("bob"),
                                           scope_of("alice", "salt")};
  const std::uint64_t start = events.since(0, "").next;
  for (int i = 0; i < 4; ++i)
    events.add_stored(named_digest(i), scopes[static_cast<std::size_t>(i)].digest,
                      scopes[static_cast<std::size_t>(i)], {});
  for (const auto& [owner, number] :
       {std::pair<std::string_view, int>("", 0), {"alice", 1}, {"bob", 2}}) {
    for (const std::uint64_t after : {std::uint64_t{0}, start}) {
      const CacheEvents::Page page = events.since(after, owner);
      EXPECT_EQ(page.root, scopes[static_cast<std::size_t>(number)].digest);
      ASSERT_EQ(page.events.size(), 1u) << owner;
      EXPECT_EQ(page.events[0].digest, named_digest(number));
    }
  }
  const std::uint64_t next = events.since(0, "").next;
  for (int i = 0; i < 4; ++i) events.add_removed(named_digest(i));
  const CacheEvents::Page gone = events.since(next, "alice");
  ASSERT_EQ(gone.events.size(), 1u);
  EXPECT_EQ(gone.events[0].digest, named_digest(1));
  EXPECT_EQ(gone.events[0].kind, CacheEventKind::kRemoved);
}

TEST(CacheEvents, APublisherIsToldTokensAndNoSaltedBlocks) {
  CacheEvents events(/*keeps_tokens=*/true);
  std::uint64_t next = events.next();
  events.add_stored(named_digest(1), scope_of("").digest, scope_of(""), std::vector<int>{4, 5});
  events.add_stored(named_digest(2), scope_of("", "s").digest, scope_of("", "s"),
                    std::vector<int>{6, 7});
  events.add_removed(named_digest(1));
  events.end_clearing();
  ASSERT_TRUE(events.wait(next));
  const CacheEvents::Backlog first = events.take(next, 1);
  ASSERT_EQ(first.events.size(), 1u);
  EXPECT_EQ(first.events[0].tokens, (std::vector<int>{4, 5}));
  EXPECT_EQ(first.events[0].root, events.plain_root());
  const CacheEvents::Backlog rest = events.take(first.next, 100);
  ASSERT_EQ(rest.events.size(), 2u);
  EXPECT_EQ(rest.events[0].event.kind, CacheEventKind::kRemoved);
  EXPECT_EQ(rest.events[1].event.kind, CacheEventKind::kCleared);
  events.end_waits();
  EXPECT_FALSE(events.wait(rest.next));
}

TEST(CacheEvents, ALatePublisherIsToldAllThatIsHeldParentsFirst) {
  CacheEvents events(/*keeps_tokens=*/true);
  const std::uint64_t start = events.next();
  const int num_blocks = 2 * static_cast<int>(CacheEvents::kMaxKept);
  for (int i = 0; i < num_blocks; ++i) {
    events.add_stored(named_digest(i), i == 0 ? scope_of("").digest : named_digest(i - 1),
                      scope_of(""), std::vector<int>{i});
  }
  const CacheEvents::Backlog all = events.take(start, 10);
  EXPECT_TRUE(all.is_whole);
  ASSERT_EQ(std::ssize(all.events), num_blocks);
  for (int i = 0; i < num_blocks; ++i)
    ASSERT_EQ(all.events[static_cast<std::size_t>(i)].tokens, std::vector<int>{i});
  EXPECT_EQ(all.next, events.next());
}

// The events match the blocks that the cache holds, and digests follow from the root and the
// tokens.
TEST(CacheEvents, TellWhatThePrefixCacheHolds) {
  constexpr int kBlockSize = 4, kNumBlocks = 12;
  BlockPool pool(kNumBlocks);
  CacheEvents events;
  PrefixCache cache(pool, CacheGroups(kBlockSize), "model", /*tier=*/nullptr, &events);
  EXPECT_EQ(events.since(0, "").root, cache.scope("", "").digest);
  const auto compute = [&](const std::vector<int>& tokens) {
    PrefixChain chain = {.scope = cache.scope("", "")};
    std::vector<GroupTable> tables(1);
    const int num_tokens = static_cast<int>(tokens.size());
    cache.acquire(chain, tokens, num_tokens, tables);
    while (std::ssize(tables[0].ids) < num_tokens / kBlockSize) {
      while (pool.num_free() == 0) ASSERT_TRUE(cache.evict());
      tables[0].ids.push_back(pool.allocate().value());
      ++tables[0].num_held;
    }
    std::vector<int> replaced;
    cache.insert(chain, tokens, num_tokens, tables, replaced);
    EXPECT_TRUE(replaced.empty());
    for (auto id = tables[0].ids.rbegin(); id != tables[0].ids.rend(); ++id) cache.release(*id);
  };
  const auto child_of = [](const Sha256Digest& parent, std::vector<int> tokens) {
    Sha256 hash;
    hash.update(std::as_bytes(std::span(parent)));
    hash.update(std::as_bytes(std::span(tokens)));
    return hash.finish();
  };
  Reader reader;
  compute({1, 2, 3, 4, 5, 6, 7, 8});
  compute({1, 2, 3, 4, 9, 9, 9, 9});
  reader.read(events);
  const Sha256Digest first = child_of(cache.scope("", "").digest, {1, 2, 3, 4});
  EXPECT_EQ(reader.held().size(), 3u);
  EXPECT_EQ(reader.held().at(first), cache.scope("", "").digest);
  EXPECT_EQ(reader.held().at(child_of(first, {5, 6, 7, 8})), first);
  EXPECT_EQ(reader.held().at(child_of(first, {9, 9, 9, 9})), first);
  for (int i = 0; i < 20; ++i) compute({i, i, i, i, 1, 1, 1, 1, 2, 2, 2, 2});  // evicts blocks
  reader.read(events);
  int num_cached = 0;
  for (int id = 0; id < kNumBlocks; ++id) num_cached += cache.is_cached(id) ? 1 : 0;
  EXPECT_EQ(std::ssize(reader.held()), num_cached);
  cache.clear("");
  reader.read(events);
  EXPECT_TRUE(reader.held().empty());
  EXPECT_EQ(reader.num_whole(), 1);
}

}  // namespace
}  // namespace pagoda
