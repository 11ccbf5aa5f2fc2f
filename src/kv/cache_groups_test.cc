#include "kv/cache_groups.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <set>

#include "tests/support/property_seed.h"

namespace pagoda {
namespace {

TEST(CacheGroups, AGroupWithoutAWindowHoldsAllBlocks) {
  const CacheGroups groups(16);
  EXPECT_EQ(groups.size(), 1);
  EXPECT_TRUE(groups.sees_all(0));
  EXPECT_EQ(groups.first_seen(0, 100'000), 0);
  EXPECT_EQ(groups.most_held(0, 2048, 1), 2048);
  EXPECT_EQ(groups.most_held(32'768), 2048);
}

// Gemma 3 1B's window: 512 positions touch 33 blocks if they begin within a block.
TEST(CacheGroups, AWindowHoldsItsOwnBlocks) {
  const CacheGroups groups(16, {0, 512});
  EXPECT_FALSE(groups.sees_all(1));
  EXPECT_EQ(groups.first_seen(1, 511), 0);
  EXPECT_EQ(groups.first_seen(1, 526), 0);
  EXPECT_EQ(groups.first_seen(1, 527), 1);
  EXPECT_EQ(groups.most_held(1, 2048, 1), 33);
  EXPECT_EQ(groups.most_held(1, 20, 1), 20);
  EXPECT_EQ(groups.most_held(1, 2048, 2048), 161);
  EXPECT_EQ(groups.most_held(32'768), 2048 + 33);
}

// Compares with sets of blocks, built position by position.
RC_GTEST_PROP(CacheGroupsProperty, CountsTheBlocksThatQueriesSee, ()) {
  const int block_size = *rc::gen::inRange(1, 20);
  const int window = *rc::gen::inRange(1, 60);
  const int num_new = *rc::gen::inRange(1, 40);
  const int num_tokens = *rc::gen::inRange(1, 200);
  const CacheGroups groups(block_size, {window});
  std::size_t most = 0;
  for (int begin = 0; begin < num_tokens; ++begin) {
    std::set<int> seen;
    for (int query = begin; query < std::min(begin + num_new, num_tokens); ++query) {
      for (int p = std::max(0, query - window + 1); p <= query; ++p) seen.insert(p / block_size);
    }
    RC_ASSERT(groups.first_seen(0, begin) == *seen.begin());
    most = std::max(most, seen.size());
  }
  const int num_blocks = groups.blocks_for(num_tokens);
  RC_ASSERT(static_cast<int>(most) <= groups.most_held(0, num_blocks, num_new));
  // In a context that is long enough the bound is reached.
  if (num_tokens >= 3 * (window + num_new + block_size))
    RC_ASSERT(static_cast<int>(most) == groups.most_held(0, num_blocks, num_new));
}

}  // namespace
}  // namespace pagoda
