#include "kv/block_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <map>
#include <vector>

#include "tests/support/property_seed.h"

namespace pagoda {
namespace {

TEST(BlockPool, HandsOutTheLowestFreeId) {
  BlockPool pool(4, BlockOrder::kLowest);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_EQ(pool.allocate({.after = 0}), 2);
  pool.release(1);
  pool.release(0);
  EXPECT_EQ(pool.num_free(), 3);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_EQ(pool.allocate(), 3);
  EXPECT_EQ(pool.allocate(), std::nullopt);
}

TEST(BlockPool, HandsOutTheBlockBehindTheLastOneIfItIsFree) {
  BlockPool pool(200);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate({.after = 0}), 1);
  EXPECT_EQ(pool.allocate({.after = 70}), 71);
  EXPECT_EQ(pool.allocate({.after = 1}), 2);
  const int other = pool.allocate({.after = 0}).value();
  EXPECT_EQ(other, 3);
  EXPECT_EQ(pool.allocate({.after = other}), other + 1);
}

TEST(BlockPool, LeavesRoomBehindASequenceThatMayGrow) {
  BlockPool pool(100);
  EXPECT_EQ(pool.allocate({.num_blocks = 3, .num_growth = 7}), 0);
  EXPECT_EQ(pool.allocate({.num_blocks = 20, .num_growth = 20}), 10);  // [1, 100) is free
  EXPECT_EQ(pool.allocate({.num_blocks = 9}), 50);
  EXPECT_EQ(pool.num_ever_held(), 51);
  // The room that is kept for the first sequence becomes smaller as it grows.
  EXPECT_EQ(pool.allocate({.after = 0, .num_blocks = 2, .num_growth = 3}), 1);
  EXPECT_EQ(pool.allocate({.num_blocks = 4}), 6);
  EXPECT_EQ(pool.num_ever_held(), 51);
}

TEST(BlockPool, SharesTheLongestRunWhereNoneHasRoom) {
  BlockPool pool(100);
  EXPECT_EQ(pool.allocate({.num_growth = 99}), 0);
  EXPECT_EQ(pool.allocate({.num_growth = 99}), 50);  // [1, 100) is free
  // middle of [1, 50), the first of the two longest runs
  EXPECT_EQ(pool.allocate({.num_growth = 99}), 25);
  EXPECT_EQ(pool.allocate({.num_growth = 99}), 75);  // middle of [51, 100)
  pool.release(50);                                  // [26, 75) is free
  EXPECT_EQ(pool.allocate({.num_blocks = 40}), 35);
  // The longest free run is [36, 75).
  EXPECT_EQ(pool.allocate({.num_blocks = 50}), 36);
}

TEST(BlockPool, LeavesNoRoomBehindWhatHasEnded) {
  BlockPool pool(100);
  const int first = pool.allocate({.num_growth = 9}).value();
  pool.retain(first);  // a cache holds it too
  pool.release(first);
  EXPECT_EQ(pool.allocate({.num_growth = 9}), 1);
  const int tail = pool.allocate({.after = 1, .num_growth = 8}).value();
  pool.end_growth(tail);
  EXPECT_EQ(pool.allocate(), 3);
}

TEST(BlockPool, KeepsABlockWhileAnybodyHoldsIt) {
  BlockPool pool(1);
  const int block = pool.allocate().value();
  pool.retain(block);
  pool.release(block);
  EXPECT_EQ(pool.num_holders(block), 1);
  EXPECT_EQ(pool.allocate(), std::nullopt);
  pool.release(block);
  EXPECT_EQ(pool.num_holders(block), 0);
  EXPECT_EQ(pool.allocate(), block);
}

TEST(BlockPool, OfNoBlocksIsFull) {
  BlockPool pool(0);
  EXPECT_EQ(pool.num_blocks(), 0);
  EXPECT_EQ(pool.allocate(), std::nullopt);
}

TEST(BlockPoolDeathTest, EndsAtADoubleFreeAndAtForeignIds) {
  BlockPool pool(2);
  const int block = pool.allocate().value();
  pool.release(block);
  EXPECT_DEATH(pool.release(block), "block 0 is released, but nobody holds it");
  EXPECT_DEATH(pool.retain(block), "block 0 is retained, but nobody holds it");
  EXPECT_DEATH(pool.release(2), "expected a block of \\[0, 2\\), got 2");
  EXPECT_DEATH(pool.release(-1), "got -1");
}

// Returns the length of the longest run of free blocks.
int longest_run(int num_blocks, const std::map<int, int>& holders) {
  int longest = 0;
  for (int id = 0, run = 0; id < num_blocks; ++id) {
    run = holders.count(id) ? 0 : run + 1;
    longest = std::max(longest, run);
  }
  return longest;
}

// Returns the number of free blocks in a row from `id` on.
int run_from(int id, int num_blocks, const std::map<int, int>& holders) {
  int run = 0;
  while (id + run < num_blocks && !holders.count(id + run)) ++run;
  return run;
}

// Compares any sequence of calls with a map from block to its number of holders.
RC_GTEST_PROP(BlockPoolProperty, AgreesWithAMapOfHolders, ()) {
  const int num_blocks = *rc::gen::element(0, 1, 5, 12, 63, 64, 65, 150);
  const auto order = *rc::gen::element(BlockOrder::kLowest, BlockOrder::kConsecutive);
  const auto operations = *rc::gen::container<std::vector<std::pair<int, unsigned>>>(
      rc::gen::pair(rc::gen::inRange(0, 4), rc::gen::arbitrary<unsigned>()));
  BlockPool pool(num_blocks, order);
  std::map<int, int> holders;  // numbers of holders, of held blocks
  const auto any_held = [&](unsigned choice) {
    return std::next(holders.begin(), choice % holders.size())->first;
  };
  for (const auto& [operation, choice] : operations) {
    if (operation <= 1) {
      BlockWish wish;
      if (operation == 0 && !holders.empty()) wish.after = any_held(choice);
      const int next = wish.after < 0 ? 0 : run_from(wish.after + 1, num_blocks, holders);
      const int longest = longest_run(num_blocks, holders);
      wish.num_blocks = 1 + static_cast<int>(choice % 5);
      wish.num_growth = static_cast<int>(choice / 5 % 4);
      const std::optional<int> block = pool.allocate(wish);
      RC_ASSERT(block.has_value() == (static_cast<int>(holders.size()) < num_blocks));
      if (block) {
        RC_ASSERT(0 <= *block && *block < num_blocks);
        RC_ASSERT(holders.count(*block) == 0u);
        if (order == BlockOrder::kLowest) {
          RC_ASSERT(longest_run(*block, holders) == 0);
        } else if (next > 0) {
          RC_ASSERT(*block == wish.after + 1);
        } else {
          RC_ASSERT(run_from(*block, num_blocks, holders) >= std::min(wish.num_blocks, longest));
        }
        holders[*block] = 1;
      }
    } else if (!holders.empty()) {
      const int block = any_held(choice);
      if (operation == 2) {
        pool.retain(block);
        ++holders[block];
      } else {
        pool.release(block);
        if (--holders[block] == 0) holders.erase(block);
      }
    }
    RC_ASSERT(pool.num_free() == num_blocks - static_cast<int>(holders.size()));
    for (int id = 0; id < num_blocks; ++id) {
      RC_ASSERT(pool.num_holders(id) == (holders.count(id) ? holders[id] : 0));
    }
  }
}

}  // namespace
}  // namespace pagoda
