#include "kv/block_tables.h"

#include <gtest/gtest.h>

#include <numeric>
#include <vector>

namespace pagoda {
namespace {

constexpr int kTableBlockSize = 4;

using Copies = std::vector<PlannedCopy>;

std::vector<int> ids_of(const BlockTable& table) {
  return {table.ids().begin(), table.ids().end()};
}

std::vector<int> tokens_from(int first, int count) {
  std::vector<int> tokens(count);
  std::iota(tokens.begin(), tokens.end(), first);
  return tokens;
}

class BlockTablesTest : public ::testing::Test {
 protected:
  // Makes room for tokens [begin, end) of a sequence of `end` tokens that grows no further.
  int extend(BlockTable& table, int begin, int end) {
    return tables_.extend(table, begin, end, {.num_tokens = end, .max_stored = end}, copies_);
  }

  // Returns a table of these tokens, computed and cached.
  BlockTable computed(const std::vector<int>& tokens) {
    const int num_tokens = static_cast<int>(tokens.size());
    BlockTable table;
    tables_.open(table, "", "");
    EXPECT_EQ(extend(table, 0, num_tokens), num_tokens);
    tables_.keep(table, tokens, num_tokens, /*in_flight=*/false);
    return table;
  }

  BlockPool pool_{6};
  CacheGroups groups_{kTableBlockSize};
  PrefixCache cache_{pool_, groups_, "model"};
  BlockTables tables_{pool_, &cache_, groups_};
  Copies copies_;
};

TEST_F(BlockTablesTest, ATableGrowsByWholeBlocksAsFarAsThereAreSome) {
  BlockTable table;
  tables_.open(table, "", "");
  EXPECT_EQ(tables_.num_missing(table, 0, 5), 2);
  EXPECT_EQ(extend(table, 0, 5), 5);
  EXPECT_EQ(table.num_blocks(), 2);
  EXPECT_EQ(tables_.num_missing(table, 5, 8), 0);
  EXPECT_EQ(extend(table, 5, 8), 8);
  EXPECT_EQ(extend(table, 8, 40), 24);  // all six blocks
  EXPECT_EQ(tables_.num_free(), 0);
  EXPECT_EQ(table.epoch(), 0u);  // it has only grown
  tables_.release(table);
  EXPECT_EQ(tables_.num_free(), 6);
  EXPECT_NE(table.epoch(), 0u);
}

TEST_F(BlockTablesTest, ABlockThatOthersHoldIsCopiedBeforeItIsWritten) {
  BlockTable first, second;
  tables_.open(first, "", "");
  extend(first, 0, 6);
  tables_.share(first, second);
  EXPECT_EQ(ids_of(first), ids_of(second));
  const int shared = first.ids()[1];
  EXPECT_EQ(tables_.num_missing(second, 6, 7), 1);
  EXPECT_EQ(extend(second, 6, 7), 7);
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].source, shared);
  EXPECT_EQ(copies_[0].destination, second.ids()[1]);
  EXPECT_EQ(copies_[0].num_tokens, 2);
  EXPECT_EQ(second.ids()[0], first.ids()[0]);
  EXPECT_NE(second.epoch(), 0u);
  // Only `first` holds the block now, besides the copy, which only reads it.
  EXPECT_EQ(tables_.num_missing(first, 6, 7), 0);
  EXPECT_EQ(extend(first, 6, 7), 7);
  EXPECT_EQ(copies_.size(), 1u);
  EXPECT_EQ(first.ids()[1], shared);
  EXPECT_EQ(pool_.num_holders(shared), 2);
  tables_.end_step(copies_);
  EXPECT_TRUE(copies_.empty());
  EXPECT_EQ(pool_.num_holders(shared), 1);
}

TEST_F(BlockTablesTest, ABlockThatWasCopiedOnceIsCopiedAgain) {
  BlockTable first, second, third;
  tables_.open(first, "", "");
  extend(first, 0, 6);
  for (BlockTable* fork : {&second, &third}) {
    tables_.share(first, *fork);
    EXPECT_EQ(extend(*fork, 6, 7), 7);
    EXPECT_EQ(copies_.size(), 1u);
    tables_.end_step(copies_);
    EXPECT_NE(fork->ids()[1], first.ids()[1]);
  }
}

TEST_F(BlockTablesTest, WhatAForkAddsIsFoundBehindWhatItShares) {
  const std::vector<int> tokens = tokens_from(10, 8);
  BlockTable first = computed(tokens_from(10, 6));
  BlockTable second;
  tables_.share(first, second);
  EXPECT_EQ(extend(second, 6, 8), 8);
  tables_.keep(second, tokens, 8, /*in_flight=*/false);
  tables_.end_step(copies_);
  tables_.release(second);
  tables_.release(first);
  BlockTable third;
  tables_.open(third, "", "");
  EXPECT_EQ(tables_.acquire(third, tokens, 8), 8);
}

TEST_F(BlockTablesTest, WithoutABlockToCopyIntoThereIsNoRoom) {
  BlockTable first, second;
  tables_.open(first, "", "");
  extend(first, 0, 22);
  tables_.share(first, second);
  EXPECT_EQ(extend(second, 22, 23), 22);
  EXPECT_TRUE(copies_.empty());
}

TEST_F(BlockTablesTest, WhatIsKeptIsFoundByTheSamePrefix) {
  const std::vector<int> tokens = tokens_from(10, 10);
  BlockTable first = computed(tokens);
  const std::vector<int> blocks = ids_of(first);
  tables_.keep_tail(first, tokens, 10);
  tables_.release(first);
  EXPECT_EQ(tables_.num_free(), 6);  // evictable
  BlockTable other;
  tables_.open(other, "", "another salt");
  EXPECT_EQ(tables_.acquire(other, tokens, 10), 0);
  BlockTable second;
  tables_.open(second, "", "");
  EXPECT_EQ(tables_.acquire(second, tokens, 10), 8);
  // The tail after them is taken over without a copy, because no sequence holds it.
  const std::span<const int> rest = std::span(tokens).subspan(8);
  EXPECT_EQ(
      tables_.acquire_partial_match(second, rest, {.num_tokens = 10, .max_stored = 10}, copies_),
      2);
  EXPECT_TRUE(copies_.empty());
  EXPECT_EQ(ids_of(second), blocks);
}

TEST_F(BlockTablesTest, EmptyBlocksBehindATailAreGivenBack) {
  const std::vector<int> tokens = tokens_from(10, 10);
  BlockTable table;
  tables_.open(table, "", "");
  extend(table, 0, 14);
  tables_.keep(table, tokens, 10, /*in_flight=*/false);
  const int tail = table.ids()[2];
  tables_.keep_tail(table, tokens, 10);
  EXPECT_EQ(table.num_blocks(), 2);
  EXPECT_EQ(pool_.num_free(), 3);
  EXPECT_TRUE(cache_.is_cached(tail));
}

// A sequence whose last token is computed again may end within a block that is cached already.
TEST_F(BlockTablesTest, APartOfACachedBlockIsNoTail) {
  const std::vector<int> tokens = tokens_from(10, 8);
  BlockTable table;
  tables_.open(table, "", "");
  extend(table, 0, 12);
  tables_.keep(table, tokens, 8, /*in_flight=*/false);
  tables_.keep_tail(table, tokens, 7);
  EXPECT_EQ(table.num_blocks(), 3);
  tables_.release(table);
  EXPECT_EQ(pool_.num_free(), 4);
  EXPECT_EQ(tables_.num_free(), 6);
}

TEST_F(BlockTablesTest, TheLastBlockOfAReleasedTableGoesFirst) {
  const std::vector<int> tokens = tokens_from(10, 12);
  BlockTable first = computed(tokens);
  tables_.release(first);
  EXPECT_TRUE(cache_.evict());
  BlockTable second;
  tables_.open(second, "", "");
  EXPECT_EQ(tables_.acquire(second, tokens, 12), 8);
}

TEST_F(BlockTablesTest, ATailGoesOverWhereThereIsNoBlockToCopyItInto) {
  const std::vector<int> tokens = tokens_from(10, 3);
  BlockTable first = computed(tokens);
  const std::vector<int> tail = ids_of(first);
  tables_.keep_tail(first, tokens, 3);
  tables_.release(first);
  BlockTable other;
  tables_.open(other, "", "");
  EXPECT_EQ(extend(other, 0, 20), 20);  // all blocks except the tail
  BlockTable second;
  tables_.open(second, "", "");
  const std::vector<int> wanted = {10, 11, 99};
  EXPECT_EQ(
      tables_.acquire_partial_match(second, wanted, {.num_tokens = 4, .max_stored = 4}, copies_),
      2);
  EXPECT_TRUE(copies_.empty());
  EXPECT_EQ(ids_of(second), tail);
  EXPECT_EQ(pool_.num_holders(tail[0]), 1);
}

TEST_F(BlockTablesTest, APartialMatchOfAFullBlockIsCopied) {
  const BlockTable first = computed(tokens_from(10, 8));
  std::vector<int> tokens = tokens_from(10, 8);
  tokens[6] = 99;
  BlockTable second;
  tables_.open(second, "", "");
  EXPECT_EQ(tables_.acquire(second, tokens, 7), 4);
  const std::span<const int> rest = std::span(tokens).subspan(4, 3);
  EXPECT_EQ(
      tables_.acquire_partial_match(second, rest, {.num_tokens = 8, .max_stored = 8}, copies_), 2);
  ASSERT_EQ(copies_.size(), 1u);
  EXPECT_EQ(copies_[0].source, first.ids()[1]);
  EXPECT_EQ(copies_[0].destination, second.ids()[1]);
  EXPECT_EQ(copies_[0].num_tokens, 2);
  tables_.end_step(copies_);
}

TEST_F(BlockTablesTest, OneBlockStandsForTheSameTokens) {
  const std::vector<int> tokens = tokens_from(10, 4);
  for (const bool in_flight : {false, true}) {
    BlockTable first = computed(tokens);
    BlockTable second;
    tables_.open(second, "", "");
    extend(second, 0, 4);
    const int own = second.ids()[0];
    ASSERT_NE(own, first.ids()[0]);
    tables_.keep(second, tokens, 4, in_flight);
    EXPECT_EQ(second.ids()[0], first.ids()[0]);
    EXPECT_NE(second.epoch(), 0u);
    // Held until the step that reads it is over.
    EXPECT_EQ(pool_.num_holders(own), in_flight ? 1 : 0);
    tables_.end_step(copies_);
    EXPECT_EQ(pool_.num_holders(own), 0);
    tables_.release(second);
    tables_.release(first);
  }
}

TEST_F(BlockTablesTest, WithoutACacheNothingIsKept) {
  BlockPool pool(2);
  BlockTables tables(pool, nullptr, CacheGroups(kTableBlockSize));
  const std::vector<int> tokens = tokens_from(10, 6);
  BlockTable table;
  tables.open(table, "", "");
  EXPECT_EQ(tables.acquire(table, tokens, 6), 0);
  EXPECT_EQ(
      tables.acquire_partial_match(table, tokens, {.num_tokens = 6, .max_stored = 6}, copies_), 0);
  EXPECT_EQ(tables.extend(table, 0, 6, {.num_tokens = 6, .max_stored = 6}, copies_), 6);
  tables.keep(table, tokens, 6, /*in_flight=*/true);
  tables.keep_tail(table, tokens, 6);
  EXPECT_EQ(table.num_blocks(), 2);
  tables.release(table);
  EXPECT_EQ(tables.num_free(), 2);
}

}  // namespace
}  // namespace pagoda
