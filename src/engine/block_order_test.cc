// Plans, preemptions and hits of the prefix cache are the same in whatever order free blocks are
// handed out.
#include <gtest/gtest.h>

#include <iostream>
#include <memory>
#include <random>

#include "engine/scheduler.h"

namespace pagoda {
namespace {

constexpr std::uint64_t kSeed = 20261122;

struct Traffic {
  int block_size = 4;
  int num_tokens = 200;  // tokens that the pool holds
  bool has_cache = false;
};

class Steps {
 public:
  Steps(const Traffic& traffic, BlockOrder order)
      : pool_(traffic.num_tokens / traffic.block_size, order),
        cache_(traffic.has_cache
                   ? std::make_unique<PrefixCache>(pool_, CacheGroups(traffic.block_size), "model")
                   : nullptr),
        scheduler_({.block_size = traffic.block_size,
                    .max_num_seqs = 7,
                    .max_num_batched_tokens = 24,
                    .max_model_len = 60},
                   pool_, cache_.get()) {}

  // Makes random arrivals, a cancellation and a step; `number` is the step's number and part of the
  // seed. Returns false when no request is left.
  bool step(std::uint64_t number) {
    std::mt19937_64 random(kSeed + number);
    const auto below = [&](int end) { return static_cast<int>(random() % std::uint64_t(end)); };
    for (int i = number < 300 ? below(3) : 0; i > 0; --i) {
      GenerationRequest request = {.priority = below(3)};
      request.sampling = {.n = below(4) == 0 ? 3 : 1, .max_tokens = 1 + below(30)};
      for (int length = 1 + below(29); length > 0; --length)
        request.prompt_token_ids.push_back(below(2));
      scheduler_.add({.id = next_id_++, .generation = std::move(request)});
    }
    if (below(10) == 0) scheduler_.cancel(1 + below(static_cast<int>(next_id_)));
    if (scheduler_.idle()) return number < 300;
    const Plan& plan = scheduler_.plan();
    note(plan);
    std::vector<SampleOutcome> outcomes;
    for (int i = 0; i < plan.num_samples; ++i) outcomes.push_back({.token_id = below(2)});
    scheduler_.commit(plan, outcomes);
    scheduler_.take_finished();
    return true;
  }

  // Returns everything that was planned, except block ids.
  const std::vector<std::uint64_t>& plans() const { return plans_; }
  const SchedulerCounters& counters() const { return scheduler_.counters(); }
  int num_consecutive() const { return num_consecutive_; }

 private:
  void note(const Plan& plan) {
    for (const PlannedSequence& planned : plan.sequences) {
      const Sequence& sequence = *planned.sequence;
      const auto blocks = sequence.block_table();
      for (const int value : {static_cast<int>(sequence.arrival()), planned.first_position,
                              planned.num_new_tokens, static_cast<int>(planned.samples),
                              sequence.num_cached_tokens(), static_cast<int>(blocks.size())}) {
        plans_.push_back(value);
      }
      bool is_consecutive = true;
      for (std::size_t i = 1; i < blocks.size(); ++i)
        is_consecutive &= blocks[i] == blocks[i - 1] + 1;
      num_consecutive_ += is_consecutive && blocks.size() > 2 ? 1 : 0;
    }
    plans_.push_back(plan.block_copies.size());
    plans_.push_back(scheduler_.num_free_blocks());
  }

  BlockPool pool_;
  std::unique_ptr<PrefixCache> cache_;
  Scheduler scheduler_;
  RequestId next_id_ = 1;
  std::vector<std::uint64_t> plans_;
  int num_consecutive_ = 0;
};

TEST(BlockOrder, ChangesNoPlan) {
  std::cout << "seed " << kSeed << "\n";
  std::uint64_t num_preemptions = 0, num_hits = 0;
  for (const int block_size : {1, 4, 16}) {
    for (const int num_tokens : {64, 200, 1600}) {
      for (const bool has_cache : {false, true}) {
        const Traffic traffic{block_size, num_tokens, has_cache};
        Steps lowest(traffic, BlockOrder::kLowest);
        Steps consecutive(traffic, BlockOrder::kConsecutive);
        for (std::uint64_t number = 0; lowest.step(number); ++number) {
          ASSERT_TRUE(consecutive.step(number));
          ASSERT_EQ(lowest.plans(), consecutive.plans())
              << block_size << " " << num_tokens << " " << has_cache << ", step " << number;
        }
        num_preemptions += consecutive.counters().num_preemptions;
        num_hits += consecutive.counters().num_prefix_hits;
        EXPECT_EQ(lowest.counters().num_preemptions, consecutive.counters().num_preemptions);
        // If memory has room for it, the order kConsecutive finds consecutive blocks.
        if (num_tokens == 1600 && !has_cache && block_size < 16) {
          EXPECT_GT(consecutive.num_consecutive(), 2 * lowest.num_consecutive());
        }
      }
    }
  }
  EXPECT_GT(num_preemptions, 100u);
  EXPECT_GT(num_hits, 1000u);
}

}  // namespace
}  // namespace pagoda
