// Tables of several cache groups over one pool: which blocks a window gives back, and which
// prefixes the cache finds in all groups together.
#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <vector>

#include "kv/block_tables.h"
#include "tests/support/fake_block_tier.h"

namespace pagoda {
namespace {

constexpr int kGroupedBlockSize = 4;
constexpr int kGroupedWindow = 6;

// One group that sees all, and two whose window is 6 positions.
class GroupTablesTest : public ::testing::Test {
 protected:
  std::vector<int> tokens_of(int first, int count) {
    std::vector<int> tokens(count);
    std::iota(tokens.begin(), tokens.end(), first);
    return tokens;
  }

  SequenceLength length_of(int num_tokens) {
    return {.num_tokens = num_tokens, .max_stored = num_tokens};
  }

  // Finds the cached prefix of the tokens, and computes the rest `chunk` tokens at a time.
  BlockTable run(const std::vector<int>& tokens, int chunk = 1000) {
    const int num_tokens = static_cast<int>(tokens.size());
    BlockTable table;
    tables_.open(table, "", "");
    num_found_ = tables_.acquire(table, tokens, num_tokens - 1);
    num_found_ += tables_.acquire_partial_match(
        table, std::span(tokens).subspan(num_found_, num_tokens - 1 - num_found_),
        length_of(num_tokens), copies_);
    tables_.give_back(table, num_found_);
    for (int begin = num_found_; begin < num_tokens;) {
      const int end = std::min(begin + chunk, num_tokens);
      begin = tables_.extend(table, begin, end, length_of(num_tokens), copies_);
      tables_.keep(table, tokens, begin, /*in_flight=*/false);
      tables_.give_back(table, begin);
      tables_.end_step(copies_);
    }
    return table;
  }

  void end(BlockTable& table, const std::vector<int>& tokens) {
    tables_.keep_tail(table, tokens, static_cast<int>(tokens.size()));
    tables_.release(table);
  }

  int num_found(const std::vector<int>& tokens) {
    BlockTable table = run(tokens);
    const int num_found = num_found_;
    end(table, tokens);
    return num_found;
  }

  static int num_held(const BlockTable& table, int group) {
    const auto ids = table.ids(group);
    return static_cast<int>(std::ranges::count_if(ids, [](int id) { return id != kNoBlock; }));
  }

  CacheGroups groups_{kGroupedBlockSize, {0, kGroupedWindow, kGroupedWindow}};
  BlockPool pool_{60};
  PrefixCache cache_{pool_, groups_, "model"};
  BlockTables tables_{pool_, &cache_, groups_};
  std::vector<PlannedCopy> copies_;
  int num_found_ = 0;
};

TEST_F(GroupTablesTest, BlocksBehindAWindowAreGivenBack) {
  BlockTables tables(pool_, nullptr, groups_);
  BlockTable table;
  tables.open(table, "", "");
  EXPECT_EQ(tables.extend(table, 0, 21, length_of(21), copies_), 21);
  EXPECT_EQ(tables.num_free(), 60 - 3 * 6);
  tables.give_back(table, 21);  // position 21 sees 16 to 21
  EXPECT_EQ(num_held(table, 0), 6);
  for (const int group : {1, 2}) {
    EXPECT_EQ(num_held(table, group), 2);
    EXPECT_EQ(table.first(group), 4);
    EXPECT_EQ(table.ids(group)[3], kNoBlock);
    EXPECT_NE(table.ids(group)[4], kNoBlock);
  }
  EXPECT_EQ(table.epoch(), 0u);
  EXPECT_EQ(tables.num_free(), 60 - 6 - 2 * 2);
  // To grow to 24 blocks it lacks 18 in the first group. In the others the window takes three
  // blocks, and it has two.
  EXPECT_EQ(tables.num_short(table, 24, 1), 18 + 2 * 1);
  EXPECT_EQ(tables.num_missing(table, 21, 25), 3);
  tables.release(table);
  EXPECT_EQ(tables.num_free(), 60);
}

TEST_F(GroupTablesTest, ABlockOfEachGroupOrNone) {
  BlockPool pool(8);
  BlockTables tables(pool, nullptr, groups_);
  BlockTable table;
  tables.open(table, "", "");
  EXPECT_EQ(tables.extend(table, 0, 40, length_of(40), copies_), 8);
  EXPECT_EQ(pool.num_free(), 2);
  EXPECT_EQ(table.ids(1).size(), 2u);
  EXPECT_EQ(table.ids(2).size(), 2u);
}

TEST_F(GroupTablesTest, APrefixIsFoundAsWithLayersThatSeeAll) {
  const std::vector<int> tokens = tokens_of(0, 30);
  BlockTable first = run(tokens, 7);
  end(first, tokens);
  EXPECT_EQ(num_found(tokens_of(0, 30)), 29);  // 28 in full blocks, and one token of the tail
  std::vector<int> other = tokens_of(0, 40);
  EXPECT_EQ(num_found(other), 30);
  other = tokens_of(0, 22);  // ends within a block, and nothing has been evicted
  other.push_back(99);
  EXPECT_EQ(num_found(other), 22);
}

TEST_F(GroupTablesTest, OnlyWhatTheWindowSeesAtTheEndIsNeeded) {
  const std::vector<int> tokens = tokens_of(0, 32);
  BlockTable table = run(tokens, 4);
  // Blocks behind the window are the least recently used: 6 of each of two groups.
  for (int i = 0; i < 12; ++i) EXPECT_TRUE(cache_.evict());
  EXPECT_FALSE(cache_.evict());
  BlockTable second;
  tables_.open(second, "", "");
  EXPECT_EQ(tables_.acquire(second, tokens, 31), 0);  // 28 sees 23 to 28, and 23 is evicted
  std::vector<int> longer = tokens_of(0, 40);
  EXPECT_EQ(tables_.acquire(second, longer, 39), 32);
  EXPECT_EQ(num_held(second, 0), 8);
  EXPECT_EQ(num_held(second, 1), 2);
  EXPECT_EQ(second.ids(1)[7], table.ids(1)[7]);
  EXPECT_EQ(second.ids(2)[6], table.ids(2)[6]);
  tables_.release(second);
  tables_.release(table);
  while (cache_.evict()) continue;
  EXPECT_EQ(pool_.num_free(), 60);
}

TEST_F(GroupTablesTest, WhatAPrefixsEndDoesNotSeeMayBeGone) {
  const std::vector<int> tokens = tokens_of(0, 24);
  BlockTable table = run(tokens, 24);  // one chunk: all blocks of it are cached
  ASSERT_TRUE(cache_.evict());         // the first block of a group with a window
  BlockTable second;
  tables_.open(second, "", "");
  EXPECT_EQ(tables_.acquire(second, tokens, 13), 12);  // position 12 sees 7 to 12
  tables_.release(second);
  EXPECT_EQ(tables_.acquire(second, tokens, 11), 0);  // position 8 sees 3 to 8, and 3 is evicted
  tables_.release(second);
  tables_.release(table);
}

TEST_F(GroupTablesTest, TailsComeAndGoWithAllTheirBlocks) {
  const std::vector<int> tokens = tokens_of(0, 10);
  BlockTable table = run(tokens);
  const std::vector<int> tail = {table.ids(0)[2], table.ids(1)[2], table.ids(2)[2]};
  end(table, tokens);
  for (int group = 0; group < 3; ++group)
    EXPECT_EQ(cache_.block_of_group(tail[0], group), tail[group]);
  EXPECT_EQ(pool_.num_free() + cache_.num_evictable(), 60);
  // The tail is taken over without a copy, because no sequence holds it.
  BlockTable second = run(tokens_of(0, 12));
  EXPECT_EQ(num_found_, 10);
  for (int group = 0; group < 3; ++group) EXPECT_EQ(second.ids(group)[2], tail[group]);
  // The first tokens of a full block are copied in all groups.
  std::vector<int> other = tokens_of(0, 11);
  other.push_back(99);
  BlockTable third;
  tables_.open(third, "", "");
  EXPECT_EQ(tables_.acquire(third, other, 11), 8);
  EXPECT_EQ(
      tables_.acquire_partial_match(third, std::span(other).subspan(8, 3), length_of(12), copies_),
      3);
  ASSERT_EQ(copies_.size(), 3u);
  for (int group = 0; group < 3; ++group) {
    EXPECT_EQ(copies_[group].source, tail[group]);
    EXPECT_EQ(copies_[group].destination, third.ids(group)[2]);
  }
  tables_.end_step(copies_);
  tables_.release(third);
  tables_.release(second);
  EXPECT_EQ(pool_.num_free() + cache_.num_evictable(), 60);
  while (cache_.evict()) continue;
  EXPECT_EQ(pool_.num_free(), 60);
}

TEST_F(GroupTablesTest, ATailIsEvictedWhole) {
  const std::vector<int> tokens = tokens_of(0, 3);
  BlockTable table = run(tokens);
  end(table, tokens);
  EXPECT_EQ(pool_.num_free(), 57);
  EXPECT_TRUE(cache_.evict());
  EXPECT_EQ(pool_.num_free(), 60);
  EXPECT_EQ(cache_.counters().num_evicted_blocks, 3u);
  EXPECT_FALSE(cache_.evict());
}

// The parent was released before its tail.
TEST_F(GroupTablesTest, ATailBehindAWindowIsClearedWithItsParent) {
  const CacheGroups groups(kGroupedBlockSize, {kGroupedWindow});
  BlockPool pool(20);
  PrefixCache cache(pool, groups, "model");
  BlockTables tables(pool, &cache, groups);
  const std::vector<int> tokens = tokens_of(0, 10);
  BlockTable table;
  tables.open(table, "", "");
  tables.extend(table, 0, 10, length_of(10), copies_);
  tables.keep(table, tokens, 10, /*in_flight=*/false);
  const int tail = table.ids(0)[2];
  tables.keep_tail(table, tokens, 10);
  cache.hold(tail);
  tables.release(table);
  cache.release(tail);
  EXPECT_EQ(pool.num_free(), 17);
  cache.clear("");
  EXPECT_EQ(pool.num_free(), 20);
}

TEST_F(GroupTablesTest, AForkCopiesTheSharedBlockOfEachGroupOrOfNone) {
  BlockPool pool(8);
  BlockTables tables(pool, nullptr, groups_);
  BlockTable first, second;
  tables.open(first, "", "");
  tables.open(second, "", "");
  tables.extend(first, 0, 6, length_of(6), copies_);
  tables.share(first, second);
  EXPECT_EQ(tables.num_missing(second, 6, 7), 3);
  // Three blocks are needed, and two are free.
  EXPECT_EQ(tables.extend(second, 6, 7, length_of(7), copies_), 6);
  EXPECT_TRUE(copies_.empty());
  EXPECT_EQ(second.ids(0)[1], first.ids(0)[1]);
}

// Behind a window parents are evicted before their children.
TEST_F(GroupTablesTest, OneGroupWithAWindowGivesBackTooAndIsFoundAgain) {
  const CacheGroups groups(kGroupedBlockSize, {kGroupedWindow});
  BlockPool pool(20);
  PrefixCache cache(pool, groups, "model");
  BlockTables tables(pool, &cache, groups);
  const std::vector<int> tokens = tokens_of(0, 30);
  BlockTable table;
  tables.open(table, "", "");
  for (int begin = 0; begin < 30; begin += 5) {
    ASSERT_EQ(tables.extend(table, begin, begin + 5, length_of(30), copies_), begin + 5);
    tables.keep(table, tokens, begin + 5, /*in_flight=*/false);
    tables.give_back(table, begin + 5);
    EXPECT_LE(num_held(table, 0), 3);
  }
  for (int i = 0; i < 6; ++i) EXPECT_TRUE(cache.evict());  // the blocks behind the window
  EXPECT_FALSE(cache.evict());
  BlockTable second;
  tables.open(second, "", "");
  EXPECT_EQ(tables.acquire(second, tokens, 29), 0);  // a block that position 28 sees is evicted
  tables.keep_tail(table, tokens, 30);
  tables.release(table);
  while (cache.evict()) continue;
  EXPECT_EQ(pool.num_free(), 20);
}

// The tier has a block for each group, under a digest of its own.
TEST_F(GroupTablesTest, TheTierIsAskedForWhatIsSeenInEachGroup) {
  std::vector<std::uint64_t> cells(60);
  testing::FakeBlockTier tier([&](int id) { return std::span(cells).subspan(id, 1); });
  PrefixCache cache(pool_, groups_, "model", &tier);
  BlockTables tables(pool_, &cache, groups_);
  const std::vector<int> tokens = tokens_of(0, 18);
  BlockTable table;
  tables.open(table, "", "");
  tables.extend(table, 0, 16, length_of(18), copies_);
  for (int group = 0; group < 3; ++group) {
    for (int i = 0; i < 4; ++i) cells[table.ids(group)[i]] = 100 * group + i;
  }
  tables.keep(table, tokens, 16, /*in_flight=*/false);
  tables.release(table);
  while (cache.evict()) continue;
  EXPECT_EQ(tier.num_blocks(), 12u);
  std::ranges::fill(cells, 0);
  BlockTable second;
  tables.open(second, "", "");
  EXPECT_EQ(tables.acquire(second, tokens, 17), 0);
  ASSERT_TRUE(tables.begin_fetch(second, tokens, 17));
  int num_loads = 100;
  EXPECT_FALSE(tables.fetch(second, tokens, length_of(18), num_loads));
  EXPECT_EQ(num_loads, 100 - 4 - 2 * 2);  // position 16 sees 11 to 16
  tables.release(second);
  EXPECT_EQ(tables.acquire(second, tokens, 17), 16);
  for (int group = 0; group < 3; ++group) {
    for (int i = second.first(group); i < 4; ++i)
      EXPECT_EQ(cells[second.ids(group)[i]], 100u * group + i);
    EXPECT_EQ(num_held(second, group), group == 0 ? 4 : 2);
  }
  tables.release(second);
  while (cache.evict()) continue;
}

}  // namespace
}  // namespace pagoda
