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

// A reader of pages, as a router would be.
class Reader {
 public:
  void read(const CacheEvents& events) {
    const CacheEvents::Page page = events.since(next_);
    if (page.is_whole) {
      held_.clear();
      ++num_whole_;
    }
    for (const CacheEvent& event : page.events) {
      if (event.is_removal) {
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
  events.begin(named_digest(0));
  EXPECT_EQ(events.since(0).root, named_digest(0));
  Reader reader;
  reader.read(events);
  events.add_stored(named_digest(1), named_digest(0));
  events.add_stored(named_digest(2), named_digest(1));
  reader.read(events);
  EXPECT_EQ(reader.held().at(named_digest(2)), named_digest(1));
  events.add_removed(named_digest(2));
  reader.read(events);
  EXPECT_EQ(reader.held().size(), 1u);
  const std::uint64_t next = events.since(0).next;
  EXPECT_TRUE(events.since(next).events.empty());
  EXPECT_FALSE(events.since(next - 3).is_whole);
  EXPECT_EQ(reader.num_whole(), 1);
  EXPECT_TRUE(events.since(next + 1).is_whole);
}

TEST(CacheEvents, AReaderOfAnotherServerGetsAllThatIsHeld) {
  CacheEvents before, after;
  Reader reader;
  before.add_stored(named_digest(1), named_digest(0));
  reader.read(before);
  for (int i = 2; i < 100; ++i) after.add_stored(named_digest(i), named_digest(0));
  reader.read(after);
  EXPECT_EQ(reader.held().size(), 98u);
  EXPECT_EQ(reader.num_whole(), 2);
}

TEST(CacheEvents, WhoIsLateGetsAllThatIsHeld) {
  CacheEvents events;
  Reader reader, late;
  events.add_stored(named_digest(-1), named_digest(0));
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
      events.add_stored(named_digest(i), named_digest(i - 1));
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

// The cache tells what it holds, and digests follow from the tokens alone.
TEST(CacheEvents, TellWhatThePrefixCacheHolds) {
  constexpr int kBlockSize = 4, kNumBlocks = 12;
  BlockPool pool(kNumBlocks);
  CacheEvents events;
  PrefixCache cache(pool, CacheGroups(kBlockSize), "model", /*tier=*/nullptr, &events);
  EXPECT_EQ(events.since(0).root, cache.scope(""));
  const auto compute = [&](const std::vector<int>& tokens) {
    PrefixChain chain = {.scope = cache.scope("")};
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
  const Sha256Digest first = child_of(cache.scope(""), {1, 2, 3, 4});
  EXPECT_EQ(reader.held().size(), 3u);
  EXPECT_EQ(reader.held().at(first), cache.scope(""));
  EXPECT_EQ(reader.held().at(child_of(first, {5, 6, 7, 8})), first);
  EXPECT_EQ(reader.held().at(child_of(first, {9, 9, 9, 9})), first);
  for (int i = 0; i < 20; ++i) compute({i, i, i, i, 1, 1, 1, 1, 2, 2, 2, 2});  // evicts
  reader.read(events);
  int num_cached = 0;
  for (int id = 0; id < kNumBlocks; ++id) num_cached += cache.is_cached(id) ? 1 : 0;
  EXPECT_EQ(std::ssize(reader.held()), num_cached);
  cache.clear();
  reader.read(events);
  EXPECT_TRUE(reader.held().empty());
  EXPECT_EQ(reader.num_whole(), 1);
}

}  // namespace
}  // namespace pagoda
