#include "kv/prefix_cache.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "tests/support/property_seed.h"

namespace pagoda {
namespace {

constexpr int kCachedBlockSize = 4;
using Tokens = std::vector<int>;

// A sequence with blocks, as the scheduler keeps one: it computes all its tokens at once.
struct Holder {
  Tokens tokens;
  std::vector<GroupTable> tables = std::vector<GroupTable>(1);
  PrefixChain chain;
  int num_cached = 0;  // cached tokens that it found

  std::vector<int>& blocks() { return tables.front().ids; }
};

void insert(PrefixCache& cache, Holder& holder, int num_computed) {
  std::vector<int> replaced;
  cache.insert(holder.chain, holder.tokens, num_computed, holder.tables, replaced);
  for (const int block_id : replaced) cache.release(block_id);
}

class PrefixCacheTest : public ::testing::Test {
 protected:
  void start(int num_blocks) {
    pool_.emplace(num_blocks);
    cache_.emplace(*pool_, CacheGroups(kCachedBlockSize), "model");
  }

  // Finds the cached prefix of the tokens, and computes the rest.
  Holder run(const Tokens& tokens, std::string_view salt = "", std::string_view owner = "") {
    Holder holder{.tokens = tokens, .chain = {.scope = cache_->scope(owner, salt)}};
    const int limit = static_cast<int>(tokens.size()) - 1;
    holder.num_cached = cache_->acquire(holder.chain, tokens, limit, holder.tables);
    while (holder.blocks().size() * kCachedBlockSize < tokens.size()) {
      if (pool_->num_free() == 0) cache_->evict();
      holder.blocks().push_back(pool_->allocate().value());
    }
    insert(*cache_, holder, static_cast<int>(tokens.size()));
    return holder;
  }

  void end(Holder& holder) {
    const std::size_t num_full = holder.tokens.size() / kCachedBlockSize;
    const auto tail = std::span(holder.tokens).subspan(num_full * kCachedBlockSize);
    if (!tail.empty() && cache_->insert_tail(holder.chain, holder.tables, tail))
      holder.blocks().pop_back();
    while (!holder.blocks().empty()) {
      cache_->release(holder.blocks().back());
      holder.blocks().pop_back();
    }
  }

  int cached_part(const Tokens& tokens, std::string_view salt = "", std::string_view owner = "") {
    Holder holder = run(tokens, salt, owner);
    const int num_cached = holder.num_cached;
    end(holder);
    return num_cached;
  }

  PrefixCache::PartialMatch partial_match(const Tokens& tokens) {
    PrefixChain chain{.scope = cache_->scope("", "")};
    std::vector<GroupTable> tables(1);
    const int num_tokens = cache_->acquire(chain, tokens, static_cast<int>(tokens.size()), tables);
    const auto found =
        cache_->find_partial_match(chain, tables, std::span(tokens).subspan(num_tokens));
    for (auto& blocks = tables[0].ids; !blocks.empty(); blocks.pop_back())
      cache_->release(blocks.back());
    return found;
  }

  std::optional<BlockPool> pool_;
  std::optional<PrefixCache> cache_;
};

TEST_F(PrefixCacheTest, FindsFullBlocksButNeverTheLastToken) {
  start(16);
  EXPECT_EQ(cached_part({1, 2, 3, 4, 5, 6, 7, 8}), 0);
  EXPECT_EQ(cached_part({1, 2, 3, 4, 5, 6, 7, 8}), 4);
  EXPECT_EQ(cached_part({1, 2, 3, 4, 5, 6, 7, 8, 9}), 8);
  EXPECT_EQ(cached_part({1, 2, 3, 4, 5, 6, 0, 8, 9}), 4);
  EXPECT_EQ(cached_part({0, 2, 3, 4, 5, 6, 7, 8, 9}), 0);
  EXPECT_EQ(cached_part({5, 6, 7, 8, 9}), 0);  // the same tokens at another position
  EXPECT_EQ(cache_->num_evictable() + pool_->num_free(), 16);
}

TEST_F(PrefixCacheTest, SaltsAndModelsAreApart) {
  start(16);
  cached_part({1, 2, 3, 4, 5}, "a");
  EXPECT_EQ(cached_part({1, 2, 3, 4, 5}, "b"), 0);
  EXPECT_EQ(cached_part({1, 2, 3, 4, 5}), 0);
  EXPECT_EQ(cached_part({1, 2, 3, 4, 5}, "a"), 4);
  EXPECT_NE(PrefixCache(*pool_, CacheGroups(4), "other").scope("", "a").digest,
            cache_->scope("", "a").digest);
}

TEST_F(PrefixCacheTest, OwnersAreApartAndForgetTheirOwn) {
  start(16);
  const Tokens tokens = {1, 2, 3, 4, 5, 6};
  cached_part(tokens, "", "alice");
  cached_part(tokens, "salt", "alice");
  EXPECT_EQ(cached_part(tokens, "", "bob"), 0);
  EXPECT_EQ(cached_part(tokens, "alice"), 0);  // no owner, and a salt like an owner's name
  Holder running = run({7, 7, 7, 7, 7}, "", "alice");
  cache_->clear("alice");
  EXPECT_EQ(cached_part(tokens, "", "alice"), 0);
  EXPECT_EQ(cached_part(tokens, "salt", "alice"), 0);
  EXPECT_EQ(cached_part({7, 7, 7, 7, 7}, "", "alice"), 4);  // the running sequence holds it
  EXPECT_EQ(cached_part(tokens, "", "bob"), 4);
  EXPECT_EQ(cached_part(tokens, "alice"), 4);
  end(running);
  cache_->clear("");
  EXPECT_EQ(cached_part(tokens, "alice"), 0);
  EXPECT_EQ(cached_part(tokens, "", "bob"), 4);
}

TEST_F(PrefixCacheTest, WhatTwoComputeAtOnceStandsInOneBlock) {
  start(16);
  PrefixChain chain{.scope = cache_->scope("", "")};
  Holder first = run({1, 2, 3, 4, 5});
  // A sequence that was admitted before the first one was computed.
  Holder second{.tokens = {1, 2, 3, 4, 6}, .chain = chain};
  second.blocks() = {pool_->allocate().value(), pool_->allocate().value()};
  const int own = second.blocks()[0];
  std::vector<int> replaced;
  cache_->insert(second.chain, second.tokens, 5, second.tables, replaced);
  EXPECT_EQ(second.blocks()[0], first.blocks()[0]);
  EXPECT_EQ(replaced, std::vector<int>{own});
  EXPECT_EQ(pool_->num_holders(own), 1);
  cache_->release(own);
  EXPECT_EQ(pool_->num_holders(own), 0);
  EXPECT_EQ(pool_->num_holders(first.blocks()[0]), 3);
  end(first);
  EXPECT_FALSE(cache_->evict() && cache_->evict());  // only the first one's tail can be evicted
  end(second);
}

TEST_F(PrefixCacheTest, TailsAreFoundByTheLongestCommonPrefix) {
  start(16);
  cached_part({1, 2, 3, 4, 5, 6});
  cached_part({1, 2, 3, 4, 5, 7, 8});
  const auto longest = partial_match({1, 2, 3, 4, 5, 7, 8, 9});
  EXPECT_EQ(longest.num_tokens, 3);
  EXPECT_TRUE(longest.is_tail && longest.is_whole);
  const auto part = partial_match({1, 2, 3, 4, 5, 7, 0});
  EXPECT_EQ(part.num_tokens, 2);
  EXPECT_FALSE(part.is_whole);
  EXPECT_EQ(partial_match({1, 2, 3, 4, 9}).num_tokens, 0);
  // A full block matches in part, too.
  cached_part({1, 2, 3, 4, 5, 6, 6, 6});
  const auto of_full = partial_match({1, 2, 3, 4, 5, 6, 6});
  EXPECT_EQ(of_full.num_tokens, 3);
  EXPECT_FALSE(of_full.is_tail);
}

TEST_F(PrefixCacheTest, OfMatchesThatAreAsLongATailIsTaken) {
  start(16);
  cached_part({1, 2, 3, 4, 5, 6});
  cached_part({1, 2, 3, 4, 5, 6, 7, 7});
  const auto found = partial_match({1, 2, 3, 4, 5, 6, 9});
  EXPECT_EQ(found.num_tokens, 2);
  EXPECT_TRUE(found.is_tail && found.is_whole);
}

// A scope may get the node of a scope that was removed.
TEST_F(PrefixCacheTest, AScopeFindsNothingOfTheOneThatTakesItsPlace) {
  start(16);
  cached_part({1, 2, 3});
  EXPECT_TRUE(cache_->evict());
  cached_part({1, 2, 3}, "another salt");
  EXPECT_EQ(partial_match({1, 2, 3, 4}).num_tokens, 0);
}

TEST_F(PrefixCacheTest, SiblingsStayWhicheverGoes) {
  start(16);
  Holder first = run({1, 1, 1, 1, 2, 2, 2, 2});
  for (const int token : {3, 4, 3}) cached_part({1, 1, 1, 1, token, token, token, token});
  EXPECT_TRUE(cache_->evict());  // the newest child in the list
  EXPECT_EQ(partial_match({1, 1, 1, 1, 4, 4}).num_tokens, 0);
  EXPECT_TRUE(cache_->evict());  // the next one in the list
  EXPECT_EQ(partial_match({1, 1, 1, 1, 3, 3}).num_tokens, 0);
  EXPECT_EQ(partial_match({1, 1, 1, 1, 2, 2}).num_tokens, 2);
  end(first);
}

TEST_F(PrefixCacheTest, ALongerTailTakesTheShorterOnesPlaceAndOnlyFourStay) {
  start(16);
  cached_part({1, 2});
  cached_part({1, 2, 3});
  EXPECT_EQ(cache_->num_evictable(), 1);
  cached_part({1, 2});  // already known
  EXPECT_EQ(cache_->num_evictable(), 1);
  for (const int token : {5, 6, 7, 8}) cached_part({token, token});
  EXPECT_EQ(cache_->num_evictable(), 4);
  EXPECT_EQ(partial_match({1, 2, 3}).num_tokens, 0);  // the oldest tail was removed
  EXPECT_EQ(partial_match({5, 5, 3}).num_tokens, 2);
}

TEST_F(PrefixCacheTest, ATailTakenOverIsTheCachesNoMore) {
  start(4);
  cached_part({1, 2, 3});
  const auto found = partial_match({1, 2, 3, 4});
  std::vector<GroupTable> tables(1);
  cache_->transfer(found.block_id, tables);
  EXPECT_EQ(tables[0].ids, std::vector<int>{found.block_id});
  EXPECT_FALSE(cache_->is_cached(found.block_id));
  EXPECT_EQ(pool_->num_holders(found.block_id), 1);
  EXPECT_EQ(partial_match({1, 2, 3, 4}).num_tokens, 0);
  EXPECT_FALSE(cache_->evict());
  cache_->release(found.block_id);
  EXPECT_EQ(pool_->num_free(), 4);
}

TEST_F(PrefixCacheTest, EvictsTheLeastRecentlyUsedAndChildrenBeforeParents) {
  start(6);
  cached_part({1, 1, 1, 1, 2, 2, 2, 2, 3});  // 2 full blocks, a tail
  cached_part({4, 4, 4, 4, 5});              // 1 full block, a tail
  EXPECT_EQ(pool_->num_free(), 1);
  // A second tail of the first chain, whose first block is now the newest.
  cached_part({1, 1, 1, 1, 9});
  EXPECT_EQ(pool_->num_free(), 0);
  // Evicts the first chain's tail and its second block, which were used least recently.
  EXPECT_TRUE(cache_->evict());
  EXPECT_TRUE(cache_->evict());
  EXPECT_EQ(partial_match({1, 1, 1, 1, 2}).num_tokens, 0);
  EXPECT_EQ(partial_match({1, 1, 1, 1, 9}).num_tokens, 1);
  EXPECT_EQ(partial_match({4, 4, 4, 4, 5}).num_tokens, 1);
  for (int i = 0; i < 4; ++i) EXPECT_TRUE(cache_->evict());
  EXPECT_FALSE(cache_->evict());
  EXPECT_EQ(pool_->num_free(), 6);
  EXPECT_EQ(cache_->counters().num_evicted_blocks, 6u);
}

TEST_F(PrefixCacheTest, HeldBlocksAreNotEvicted) {
  start(3);
  Holder holder = run({1, 2, 3, 4, 5});
  EXPECT_FALSE(cache_->evict());
  EXPECT_EQ(cache_->num_evictable(), 0);
  end(holder);
  EXPECT_EQ(cache_->num_evictable(), 2);
}

TEST_F(PrefixCacheTest, IsClearedOfAllThatNobodyHolds) {
  start(8);
  Holder holder = run({1, 1, 1, 1, 2, 2, 2, 2, 3});
  cached_part({1, 1, 1, 1, 5, 5, 5, 5, 6});
  cached_part({4, 4, 4, 4, 5});
  cache_->clear("");
  EXPECT_EQ(cache_->num_evictable(), 0);
  EXPECT_EQ(pool_->num_free(), 5);
  EXPECT_EQ(cached_part({4, 4, 4, 4, 5}), 0);
  EXPECT_EQ(cached_part({1, 1, 1, 1, 2, 2, 2, 2, 3}), 8);
  end(holder);
  cache_->clear("");
  EXPECT_EQ(pool_->num_free(), 8);
  EXPECT_EQ(cached_part({1, 1, 1, 1, 2, 2, 2, 2, 3}), 0);
}

void check_holders(const BlockPool& pool, const PrefixCache& cache,
                   const std::vector<Holder>& holders) {
  std::map<int, int> num_owners;
  for (const Holder& holder : holders) {
    for (const int block : holder.tables.front().ids) ++num_owners[block];
  }
  int num_evictable = 0;
  for (int block = 0; block < pool.num_blocks(); ++block) {
    RC_ASSERT(pool.num_holders(block) == num_owners[block] + (cache.is_cached(block) ? 1 : 0));
    num_evictable += cache.is_cached(block) && num_owners[block] == 0;
  }
  RC_ASSERT(cache.num_evictable() == num_evictable);
}

// Records the first token of each block that is stored.
class NotedTier final : public BlockTier {
 public:
  std::vector<int> first_tokens;
  void store(int, const Sha256Digest&, std::span<const int> tokens) override {
    EXPECT_EQ(tokens.size(), std::size_t{kCachedBlockSize});
    first_tokens.push_back(tokens.front());
  }
  bool wait_for_room() override { return first_tokens.size() < 4; }
  int num_held(std::span<const Sha256Digest>) const override { return 0; }
  FetchId begin_fetch(std::span<const Sha256Digest>, std::span<const int>) override { return 0; }
  Arrival arrival(FetchId) override { return Arrival::kNever; }
  void load(FetchId, int) override {}
  void pass(FetchId) override {}
  void end_fetch(FetchId) override {}
  int num_loads_per_step() const override { return 1; }
  BlockTierCounters counters() const override { return {}; }
};

TEST_F(PrefixCacheTest, HandsOnFullBlocksThatItGivesUpChildrenFirst) {
  NotedTier tier;
  pool_.emplace(4);
  cache_.emplace(*pool_, CacheGroups(kCachedBlockSize), "model", &tier);
  cached_part({1, 1, 1, 1, 2, 2, 2, 2, 3, 3});
  EXPECT_TRUE(cache_->evict());  // the tail, which is not stored
  EXPECT_TRUE(tier.first_tokens.empty());
  EXPECT_TRUE(cache_->evict());
  EXPECT_EQ(tier.first_tokens, (std::vector{2}));
  cached_part({7, 7, 7, 7, 8, 8, 8, 8, 9});
  EXPECT_EQ(cache_->store_all(), 3);
  EXPECT_EQ(tier.first_tokens, (std::vector{2, 1, 8, 7}));
  EXPECT_EQ(cache_->store_all(), 0);  // the tier has no room
  EXPECT_EQ(cached_part({7, 7, 7, 7, 8, 8, 8, 8, 9}), 8);
  const std::vector<int> handed_on = tier.first_tokens;
  cache_->clear("");
  EXPECT_EQ(tier.first_tokens, handed_on);
  EXPECT_EQ(pool_->num_free(), 4);
}

// Compares the prefixes found for random sequences with the set of all computed prefixes of whole
// blocks. A found prefix is in the set, and without evictions it is the longest one.
RC_GTEST_PROP(PrefixCacheProperty, FindsTheLongestOfWhatWasComputed, ()) {
  const int num_blocks = *rc::gen::inRange(8, 64);
  BlockPool pool(num_blocks);
  PrefixCache cache(pool, CacheGroups(kCachedBlockSize), "model");
  std::set<Tokens> computed;
  std::vector<Holder> holders;
  const auto end = [&](Holder& holder) {
    const std::size_t num_full = holder.tokens.size() / kCachedBlockSize;
    const auto tail = std::span(holder.tokens).subspan(num_full * kCachedBlockSize);
    if (!tail.empty() && cache.insert_tail(holder.chain, holder.tables, tail))
      holder.blocks().pop_back();
    for (; !holder.blocks().empty(); holder.blocks().pop_back())
      cache.release(holder.blocks().back());
  };
  const int num_events = *rc::gen::inRange(0, 60);
  for (int event = 0; event < num_events; ++event) {
    if (!holders.empty() && *rc::gen::inRange(0, 2) == 0) {
      const int which = *rc::gen::inRange<int>(0, static_cast<int>(holders.size()));
      end(holders[which]);
      holders.erase(holders.begin() + which);
    } else {
      const int length = *rc::gen::inRange(1, 14);
      Holder holder{.tokens = *rc::gen::container<Tokens>(length, rc::gen::inRange(0, 2)),
                    .chain = {.scope = cache.scope("", "")}};
      const auto evicted_before = cache.counters().num_evicted_blocks;
      const int found = cache.acquire(holder.chain, holder.tokens, length - 1, holder.tables);
      int longest = 0;
      while (longest + kCachedBlockSize < length &&
             computed.count(Tokens(holder.tokens.begin(),
                                   holder.tokens.begin() + longest + kCachedBlockSize)) > 0) {
        longest += kCachedBlockSize;
      }
      RC_ASSERT(found <= longest);
      if (evicted_before == 0) RC_ASSERT(found == longest);
      while (static_cast<int>(holder.blocks().size()) * kCachedBlockSize < length) {
        if (pool.num_free() == 0 && !cache.evict()) break;
        holder.blocks().push_back(pool.allocate().value());
      }
      const int room =
          std::min(length, static_cast<int>(holder.blocks().size()) * kCachedBlockSize);
      holder.tokens.resize(room);
      insert(cache, holder, room);
      for (int i = kCachedBlockSize; i <= room; i += kCachedBlockSize)
        computed.insert(Tokens(holder.tokens.begin(), holder.tokens.begin() + i));
      if (room == 0) continue;
      holders.push_back(std::move(holder));
    }
    check_holders(pool, cache, holders);
  }
  for (Holder& holder : holders) end(holder);
  while (cache.evict()) {
  }
  RC_ASSERT(pool.num_free() == num_blocks);
}

}  // namespace
}  // namespace pagoda
