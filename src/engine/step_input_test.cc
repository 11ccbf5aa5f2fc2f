#include "engine/step_input.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <iostream>
#include <memory>
#include <random>

#include "backend/backend.h"

namespace pagoda {
namespace {

constexpr std::uint64_t kSeed = 20261121;

// The scheduler's steps with a sampler that draws anything.
class Steps {
 public:
  Steps(const SchedulerOptions& options, int num_blocks, bool has_cache)
      : pool_(num_blocks), random_(kSeed) {
    if (has_cache)
      cache_ = std::make_unique<PrefixCache>(pool_, CacheGroups(options.block_size), "model");
    scheduler_ = std::make_unique<Scheduler>(options, pool_, cache_.get());
  }

  int below(int end) { return static_cast<int>(random_() % static_cast<std::uint64_t>(end)); }

  void add(int num_prompt_tokens, const SamplingParams& params, int num_ids = 3) {
    GenerationRequest request = {.sampling = params, .priority = below(3)};
    for (int i = 0; i < num_prompt_tokens; ++i) request.prompt_token_ids.push_back(below(num_ids));
    scheduler_->add({.id = next_id_++, .generation = std::move(request)});
  }

  void commit(const Plan& plan) {
    outcomes_.clear();
    for (int i = 0; i < plan.num_samples; ++i) outcomes_.push_back({.token_id = below(3)});
    scheduler_->commit(plan, outcomes_);
    scheduler_->take_finished();
  }

  Scheduler& scheduler() { return *scheduler_; }
  RequestId next_id() const { return next_id_; }

 private:
  BlockPool pool_;
  std::mt19937_64 random_;
  std::unique_ptr<PrefixCache> cache_;
  std::unique_ptr<Scheduler> scheduler_;
  std::vector<SampleOutcome> outcomes_;
  RequestId next_id_ = 1;
};

// The rows of a table [seqs or more, max_blocks] against the sequences' own.
void expect_tables(const Plan& plan, const HostBatch& host, std::span<const std::int32_t> tables) {
  for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
    const std::span<const int> blocks = plan.sequences[i].sequence->block_table();
    ASSERT_LE(static_cast<int>(blocks.size()), host.max_blocks);
    const auto row = tables.subspan(i * host.max_blocks, blocks.size());
    ASSERT_TRUE(std::equal(blocks.begin(), blocks.end(), row.begin())) << "sequence " << i;
    bool is_consecutive = true;
    for (std::size_t b = 1; b < blocks.size(); ++b)
      is_consecutive &= blocks[b] == blocks[b - 1] + 1;
    ASSERT_EQ(host.first_slots[i] >= 0, is_consecutive) << "sequence " << i;
  }
}

// Tables apart, which may lie otherwise: the rows have been compared.
void expect_same(const HostBatch& kept, const HostBatch& rebuilt, int block_size) {
  EXPECT_EQ(kept.token_ids, rebuilt.token_ids);
  EXPECT_EQ(kept.positions, rebuilt.positions);
  EXPECT_EQ(kept.query_start, rebuilt.query_start);
  EXPECT_EQ(kept.context_lens, rebuilt.context_lens);
  EXPECT_EQ(kept.logits_rows, rebuilt.logits_rows);
  EXPECT_EQ(kept.slot_mapping, rebuilt.slot_mapping);
  EXPECT_EQ(kept.first_slots, rebuilt.first_slots);
  EXPECT_EQ(kept.num_decodes, rebuilt.num_decodes);
  EXPECT_EQ(kept.block_copies.size(), rebuilt.block_copies.size());
  for (int seq = 0; seq < kept.num_seqs(); ++seq) {
    for (int t = kept.query_start[seq]; t < kept.query_start[seq + 1]; ++t) {
      const int position = kept.positions[t];
      const int block = kept.block_tables[seq * kept.max_blocks + position / block_size];
      EXPECT_EQ(kept.slot_mapping[t], block * block_size + position % block_size);
      if (kept.first_slots[seq] >= 0) {
        EXPECT_EQ(kept.slot_mapping[t], kept.first_slots[seq] + position);
      }
    }
  }
}

struct Traffic {
  int block_size = 4;
  int num_blocks = 60;
  bool has_cache = false;
};

// Arrivals, cancels, preemptions, forks, shared and replaced blocks.
void expect_kept_equals_rebuilt(const Traffic& traffic) {
  const auto exec = make_exec({.backend = Backend::kReference}).value();
  Steps steps({.block_size = traffic.block_size,
               .max_num_seqs = 7,
               .max_num_batched_tokens = 24,
               .max_model_len = 60},
              traffic.num_blocks, traffic.has_cache);
  StepInput kept(traffic.block_size);
  int num_left = 400;
  while (num_left > 0 || !steps.scheduler().idle()) {
    for (int i = steps.below(3); num_left > 0 && i > 0; --i, --num_left) {
      SamplingParams params{.n = steps.below(4) == 0 ? 3 : 1, .max_tokens = 1 + steps.below(30)};
      if (steps.below(5) == 0) params.prompt_logprobs = 0;
      steps.add(1 + steps.below(30), params);
    }
    if (steps.below(10) == 0)
      steps.scheduler().cancel(1 + steps.below(static_cast<int>(steps.next_id())));
    const Plan& plan = steps.scheduler().plan();
    if (plan.empty()) continue;
    StepInput fresh(traffic.block_size);
    const HostBatch& host = kept.set(plan);
    expect_tables(plan, host, host.block_tables);
    expect_same(host, fresh.set(plan), traffic.block_size);
    EXPECT_TRUE(std::ranges::equal(kept.scored_rows(), fresh.scored_rows()));
    // Not every step's: what one has missed comes with the next.
    if (steps.below(8) > 0) {
      const StepBatch batch = kept.upload(*exec);
      expect_tables(plan, host, batch.block_tables.span<std::int32_t>());
    }
    if (::testing::Test::HasFailure()) return;
    if (steps.below(50) == 0) {
      steps.scheduler().fail(plan, internal_error("step"));
      steps.scheduler().take_finished();
    } else {
      steps.commit(plan);
    }
  }
  const StepInputCounters& counters = kept.counters();
  EXPECT_GT(counters.num_paged_steps, 0u);
}

TEST(StepInput, KeptEqualsRebuilt) {
  std::cout << "seed " << kSeed << "\n";
  for (const int block_size : {1, 4, 16}) {
    for (const int num_tokens : {70, 200, 600}) {
      for (const bool has_cache : {false, true}) {
        SCOPED_TRACE(testing::Message() << "blocks of " << block_size << ", " << num_tokens
                                        << " tokens, cache " << has_cache);
        expect_kept_equals_rebuilt({.block_size = block_size,
                                    .num_blocks = num_tokens / block_size + 1,
                                    .has_cache = has_cache});
        if (HasFailure()) return;
      }
    }
  }
}

TEST(StepInput, BlocksOfAWholeContextAreConsecutive) {
  Steps steps({.block_size = 60, .max_num_seqs = 4, .max_model_len = 60}, 4, false);
  StepInput input(60);
  for (int i = 0; i < 4; ++i) steps.add(20 + i, {.max_tokens = 30});
  while (!steps.scheduler().idle()) {
    const Plan& plan = steps.scheduler().plan();
    for (const std::int32_t slot : input.set(plan).first_slots) EXPECT_EQ(slot % 60, 0);
    steps.commit(plan);
  }
  EXPECT_GT(input.counters().num_contiguous_steps, 20u);
  EXPECT_EQ(input.counters().num_paged_steps, 0u);
}

// Words that 64 decode steps of four sequences write, their prompts of num_prompt_tokens.
std::uint64_t words_of_decodes(int num_prompt_tokens) {
  Steps steps({.max_num_seqs = 4, .max_num_batched_tokens = 65536, .max_model_len = 16384}, 4096,
              true);
  const auto exec = make_exec({.backend = Backend::kReference}).value();
  StepInput input(16);
  for (int i = 0; i < 4; ++i)
    steps.add(num_prompt_tokens, {.max_tokens = 100, .ignore_eos = true}, 1000);
  std::uint64_t words = 0;
  for (int step = 0; step <= 64; ++step) {
    const std::uint64_t before = input.counters().num_words;
    const Plan& plan = steps.scheduler().plan();
    input.set(plan);
    input.upload(*exec);
    EXPECT_EQ(plan.is_decode(), step > 0);
    if (step > 0) words += input.counters().num_words - before;
    steps.commit(plan);
  }
  return words;
}

TEST(StepInput, ADecodeTouchesAsManyWordsInAnyContext) {
  const std::uint64_t words = words_of_decodes(100);
  EXPECT_EQ(words, words_of_decodes(10'000));
  // Seven a sequence and the end of query_start; a block every 16th step.
  EXPECT_EQ(words, 64 * (4 * 7 + 1) + 64 / 16 * 4u);
}

}  // namespace
}  // namespace pagoda
