#include "kv/block_pool.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <map>
#include <vector>

#include "tests/support/property_seed.h"

namespace pagoda {
namespace {

TEST(BlockPool, HandsOutAscendingIdsThenTheOneFreedLast) {
  BlockPool pool(4);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_EQ(pool.allocate(), 2);
  pool.release(0);
  pool.release(1);
  EXPECT_EQ(pool.num_free(), 3);
  EXPECT_EQ(pool.allocate(), 1);
  EXPECT_EQ(pool.allocate(), 0);
  EXPECT_EQ(pool.allocate(), 3);
  EXPECT_EQ(pool.allocate(), std::nullopt);
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

// Any sequence of calls, against a map from block to its number of holders.
RC_GTEST_PROP(BlockPoolProperty, AgreesWithAMapOfHolders, ()) {
  const int num_blocks = *rc::gen::inRange(0, 12);
  const auto operations = *rc::gen::container<std::vector<std::pair<int, unsigned>>>(
      rc::gen::pair(rc::gen::inRange(0, 4), rc::gen::arbitrary<unsigned>()));
  BlockPool pool(num_blocks);
  std::map<int, int> holders;  // of blocks that somebody holds
  const auto any_held = [&](unsigned choice) {
    return std::next(holders.begin(), choice % holders.size())->first;
  };
  for (const auto& [operation, choice] : operations) {
    if (operation <= 1) {
      const std::optional<int> block = pool.allocate();
      RC_ASSERT(block.has_value() == (static_cast<int>(holders.size()) < num_blocks));
      if (block) {
        RC_ASSERT(0 <= *block && *block < num_blocks);
        RC_ASSERT(holders.count(*block) == 0u);
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
