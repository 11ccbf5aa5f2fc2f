// A tier below the prefix cache: which sequences wait for it and which do not, and that no sequence
// reads another one's blocks.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <random>
#include <set>
#include <vector>

#include "engine/scheduler.h"
#include "tests/support/fake_block_tier.h"

namespace pagoda {
namespace {

using Arrival = BlockTier::Arrival;
using testing::FakeBlockTier;

constexpr int kBlockSize = 4;
constexpr std::uint64_t kTierSeed = 20261125;
constexpr std::uint64_t kNobodys = ~std::uint64_t{0};

// A scheduler over a simulated KV cache: an entry is the hash of all tokens up to its own.
class SchedulerTierTest : public ::testing::Test {
 protected:
  void start(int num_blocks, int max_num_seqs = 4, int max_num_batched_tokens = 64) {
    cells_.assign(static_cast<std::size_t>(num_blocks) * kBlockSize, kNobodys);
    pool_.emplace(num_blocks);
    tier_.emplace([this](int block_id) {
      return std::span(cells_).subspan(static_cast<std::size_t>(block_id) * kBlockSize, kBlockSize);
    });
    restart(max_num_seqs, max_num_batched_tokens);
  }

  // Forgets everything except the tier.
  void restart(int max_num_seqs = 4, int max_num_batched_tokens = 64) {
    scheduler_.reset();
    pool_.emplace(pool_->num_blocks());
    cache_.emplace(*pool_, CacheGroups(kBlockSize), "model", &*tier_);
    scheduler_.emplace(SchedulerOptions{.block_size = kBlockSize,
                                        .max_num_seqs = max_num_seqs,
                                        .max_num_batched_tokens = max_num_batched_tokens,
                                        .max_model_len = 60},
                       *pool_, &*cache_);
  }

  RequestId add(std::vector<int> prompt, int max_tokens = 1, int priority = 0, int n = 1) {
    const RequestId id = next_id_++;
    scheduler_->add(
        {.id = id,
         .generation = {.prompt_token_ids = std::move(prompt),
                        .sampling = {.n = n, .max_tokens = max_tokens, .ignore_eos = true},
                        .priority = priority}});
    return id;
  }

  // Runs a step. Returns the requests in it, with their numbers of tokens.
  std::map<RequestId, int> step() {
    const Plan& plan = scheduler_->plan();
    std::map<RequestId, int> planned;
    for (const PlannedCopy& copy : plan.block_copies) {
      for (int i = 0; i < copy.num_tokens; ++i) cell(copy.destination, i) = cell(copy.source, i);
    }
    for (const PlannedSequence& part : plan.sequences) {
      planned[part.sequence->request_id()] += part.num_new_tokens;
      run(part);
    }
    scheduler_->commit(plan, std::vector<SampleOutcome>(plan.num_samples, {.token_id = 5}));
    for (const auto& sequence : scheduler_->take_finished()) {
      EXPECT_NE(sequence->finish_reason(), FinishReason::kError);
      ended_.insert(sequence->request_id());
    }
    for (int block = 0; block < pool_->num_blocks(); ++block) {
      for (int i = 0; pool_->num_holders(block) == 0 && i < kBlockSize; ++i)
        cell(block, i) = kNobodys;
    }
    return planned;
  }

  std::uint64_t& cell(int block_id, int i) {
    return cells_[static_cast<std::size_t>(block_id) * kBlockSize + i];
  }

  // Checks that the context is the sequence's own, and writes the entries that the step adds.
  void run(const PlannedSequence& part) {
    std::uint64_t hash = 1;
    for (int i = 0; i < part.context_len(); ++i) {
      hash = hash * 6364136223846793005u + part.sequence->token(i) + 1442695040888963407u;
      std::uint64_t& entry = cell(part.sequence->block_table()[i / kBlockSize], i % kBlockSize);
      if (i < part.first_position) {
        ASSERT_EQ(entry, hash) << "request " << part.sequence->request_id() << ", token " << i;
      } else {
        entry = hash;
      }
    }
  }

  // Computes a prompt, stores its blocks in the tier, and forgets them everywhere else.
  void leave_to_tier(const std::vector<int>& prompt) {
    add(prompt);
    while (!scheduler_->idle()) step();
    EXPECT_GT(cache_->store_all(), 0);
    restart();
  }

  static std::vector<int> prompt_of(int first, int count) {
    std::vector<int> prompt;
    for (int i = 0; i < count; ++i) prompt.push_back(10 + first + i % 7);
    return prompt;
  }

  std::vector<std::uint64_t> cells_;
  std::optional<BlockPool> pool_;
  std::optional<FakeBlockTier> tier_;
  std::optional<PrefixCache> cache_;
  std::optional<Scheduler> scheduler_;
  std::set<RequestId> ended_;
  RequestId next_id_ = 0;
};

using Planned = std::map<RequestId, int>;

TEST_F(SchedulerTierTest, AFetchedPrefixIsNotComputedAndCountsAsCached) {
  start(12);
  leave_to_tier(prompt_of(0, 18));
  const RequestId id = add(prompt_of(0, 18));
  EXPECT_EQ(step(), Planned{});  // admission begins the fetch
  EXPECT_FALSE(scheduler_->idle());
  EXPECT_EQ(scheduler_->num_waiting(), 1);
  EXPECT_EQ(step(), Planned{});  // two blocks per step
  EXPECT_EQ(step(), (Planned{{id, 2}}));
  EXPECT_EQ(tier_->num_loaded, 4);
  EXPECT_EQ(scheduler_->counters().num_told_prefix_hits, 16u);
  EXPECT_EQ(tier_->num_fetches(), 0u);
  // The second request finds the prefix in memory.
  add(prompt_of(0, 18));
  EXPECT_EQ(step().size(), 1u);
  EXPECT_EQ(tier_->num_loaded, 4);
}

TEST_F(SchedulerTierTest, OthersRunMeanwhile) {
  start(20);
  leave_to_tier(prompt_of(0, 18));
  tier_->arrives = [] { return Arrival::kAwaited; };
  const RequestId first = add(prompt_of(0, 18));
  const RequestId second = add(prompt_of(50, 6), /*max_tokens=*/3);
  EXPECT_EQ(step(), (Planned{{second, 6}}));
  EXPECT_EQ(step(), (Planned{{second, 1}}));
  tier_->arrives = [] { return Arrival::kHere; };
  step();
  EXPECT_EQ(step(), (Planned{{first, 2}}));
}

TEST_F(SchedulerTierTest, OneThatFetchesHasItsPlace) {
  start(20);
  leave_to_tier(prompt_of(0, 18));
  restart(/*max_num_seqs=*/1);
  tier_->arrives = [] { return Arrival::kAwaited; };
  const RequestId first = add(prompt_of(0, 18));
  const RequestId second = add(prompt_of(50, 6));
  for (int i = 0; i < 2; ++i) EXPECT_EQ(step(), Planned{});
  tier_->arrives = [] { return Arrival::kHere; };
  step();
  EXPECT_EQ(step(), (Planned{{first, 2}}));
  EXPECT_EQ(step(), (Planned{{second, 6}}));
}

TEST_F(SchedulerTierTest, WhatDoesNotComeIsComputed) {
  start(12);
  leave_to_tier(prompt_of(0, 18));
  tier_->arrives = [this] { return tier_->num_loaded < 1 ? Arrival::kHere : Arrival::kNever; };
  const RequestId id = add(prompt_of(0, 18));
  EXPECT_EQ(step(), Planned{});
  EXPECT_EQ(step(), (Planned{{id, 14}}));
  EXPECT_TRUE(scheduler_->idle());
}

TEST_F(SchedulerTierTest, WhatSomebodyElseHasComputedIsPassedOver) {
  start(20);
  leave_to_tier(prompt_of(0, 18));
  tier_->arrives = [] { return Arrival::kAwaited; };
  const RequestId slow = add(prompt_of(0, 18));
  step();
  tier_->arrives = [] { return Arrival::kNever; };
  const RequestId other = add(prompt_of(0, 18));
  tier_->arrives = [] { return Arrival::kAwaited; };
  step();  // both wait for the same blocks
  int num_asked = 0;
  tier_->arrives = [&] { return num_asked++ == 0 ? Arrival::kNever : Arrival::kAwaited; };
  EXPECT_EQ(step(), (Planned{{slow, 18}}));  // its fetch fails: it computes and caches its blocks
  EXPECT_EQ(step(), (Planned{{other, 1}}));  // it takes all from the cache, the tail too
  EXPECT_EQ(tier_->num_passed, 4);
  EXPECT_EQ(tier_->num_loaded, 0);
}

TEST_F(SchedulerTierTest, WhoRunsTakesBlocksFromWhoFetches) {
  start(8);
  leave_to_tier(prompt_of(0, 18));
  const RequestId runs = add(prompt_of(50, 7), /*max_tokens=*/16);
  step();
  const RequestId fetches = add(prompt_of(0, 18));
  tier_->loads_per_step = 1;
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(), (Planned{{runs, 1}}));
  EXPECT_EQ(tier_->num_fetches(), 1u);
  tier_->arrives = [] { return Arrival::kAwaited; };
  while (!ended_.contains(runs)) ASSERT_EQ(step().at(runs), 1);
  tier_->arrives = [] { return Arrival::kHere; };
  for (int i = 0; i < 20 && !scheduler_->idle(); ++i) step();
  EXPECT_TRUE(ended_.contains(fetches));
  EXPECT_EQ(scheduler_->counters().num_preemptions, 0u);
}

TEST_F(SchedulerTierTest, OneThatFetchesCanBeCancelledWithItsBlocks) {
  start(12);
  leave_to_tier(prompt_of(0, 18));
  const RequestId id = add(prompt_of(0, 18), 1, 0, /*n=*/2);
  step();
  tier_->loads_per_step = 1;
  step();
  scheduler_->cancel(id, 0);
  EXPECT_FALSE(scheduler_->idle());  // the other sample goes on with the fetch
  EXPECT_EQ(tier_->num_fetches(), 1u);
  scheduler_->cancel(id);
  EXPECT_TRUE(scheduler_->idle());
  EXPECT_EQ(tier_->num_fetches(), 0u);
  EXPECT_EQ(scheduler_->num_free_blocks(), 12);
  EXPECT_EQ(scheduler_->take_finished().size(), 2u);
}

// The sample that takes the place of a cancelled one continues its fetch, and does not fetch again
// the blocks that failed.
TEST_F(SchedulerTierTest, NobodyFetchesTwiceForOneThatIsCancelled) {
  start(12);
  leave_to_tier(prompt_of(0, 18));
  tier_->arrives = [] { return Arrival::kAwaited; };
  const RequestId id = add(prompt_of(0, 18), 1, 0, /*n=*/2);
  step();
  scheduler_->cancel(id, 0);
  tier_->arrives = [] { return Arrival::kNever; };
  EXPECT_EQ(step(), (Planned{{id, 18}}));
  EXPECT_TRUE(scheduler_->idle());
}

// A running sequence takes blocks from the fetching sequence that is last in the order, not from
// the one that began its fetch last.
TEST_F(SchedulerTierTest, TheFirstInTheOrderKeepsItsFetch) {
  start(14);
  leave_to_tier(prompt_of(0, 14));
  leave_to_tier(prompt_of(20, 14));
  add(prompt_of(50, 7), /*max_tokens=*/50);
  step();
  tier_->loads_per_step = 1;
  add(prompt_of(0, 14), /*max_tokens=*/1, /*priority=*/1);
  for (int i = 0; i < 2; ++i) step();
  tier_->arrives = [] { return Arrival::kAwaited; };
  const RequestId first = add(prompt_of(20, 14));
  step();
  EXPECT_EQ(tier_->num_fetches(), 2u);
  EXPECT_EQ(tier_->num_loaded, 2);  // blocks of the other request
  while (tier_->num_fetches() == 2) ASSERT_EQ(step().size(), 1u);
  ASSERT_EQ(scheduler_->fetching().size(), 1u);
  EXPECT_EQ(scheduler_->fetching()[0]->request_id(), first);
}

TEST_F(SchedulerTierTest, SaltsFindNothingOfOneAnother) {
  start(12);
  leave_to_tier(prompt_of(0, 18));
  scheduler_->add({.id = 77,
                   .generation = {.prompt_token_ids = prompt_of(0, 18),
                                  .sampling = {.max_tokens = 1},
                                  .cache_salt = "another"}});
  EXPECT_EQ(step(), (Planned{{77, 18}}));
}

// Few blocks, prompts with common prefixes, priorities, cancellations and restarts, over a tier
// that is slow, forgets, drops and fails. step() checks every context, and every sequence ends.
TEST_F(SchedulerTierTest, NoContextIsAnotherOnesWhateverTheTierDoes) {
  std::mt19937_64 random(kTierSeed);
  const auto below = [&](int end) { return static_cast<int>(random() % std::uint64_t(end)); };
  int num_loaded = 0;
  for (int round = 0; round < 60; ++round) {
    start(/*num_blocks=*/16 + below(12), 1 + below(5), 16 + below(60));
    tier_->takes = [&] { return below(8) > 0; };
    tier_->arrives = [&] {
      const int choice = below(20);
      return choice == 0 ? Arrival::kNever : choice < 8 ? Arrival::kAwaited : Arrival::kHere;
    };
    for (int life = 0; life < 3; ++life) {
      tier_->loads_per_step = 1 + below(4);
      for (int i = 0; i < 150; ++i) {
        if (below(3) == 0) {
          const int length = 1 + below(40);
          add(prompt_of(below(3) * 20, length), 1 + below(12), below(2), 1 + below(2));
        }
        if (below(10) == 0) tier_->forget_one();
        if (below(20) == 0 && next_id_ > 3) scheduler_->cancel(next_id_ - 1 - below(3));
        step();
        ASSERT_FALSE(HasFatalFailure()) << "seed " << kTierSeed << ", round " << round;
      }
      for (int i = 0; i < 5000 && !scheduler_->idle(); ++i) step();
      ASSERT_TRUE(scheduler_->idle()) << "seed " << kTierSeed << ", round " << round;
      ASSERT_EQ(tier_->num_fetches(), 0u);
      ASSERT_EQ(scheduler_->num_free_blocks(), pool_->num_blocks());
      cache_->store_all();
      restart();
    }
    num_loaded += tier_->num_loaded;
  }
  EXPECT_GT(num_loaded, 1000);
}

}  // namespace
}  // namespace pagoda
