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

// Steps of a scheduler, with a sampler that draws random tokens.
class Steps {
 public:
  Steps(const SchedulerOptions& options, int num_blocks, bool has_cache)
      : pool_(num_blocks), random_(kSeed) {
    if (has_cache)
      cache_ = std::make_unique<PrefixCache>(
          pool_, CacheGroups(options.block_size, options.group_windows), "model");
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

// Expects that the rows of tables [tables, seqs or more, max_blocks] have the sequences' blocks,
// except the blocks that have been given back.
void expect_tables(const Plan& plan, const HostBatch& host, std::span<const std::int32_t> all,
                   const std::vector<KvTable>& tables, int block_size) {
  const std::size_t num_rows = all.size() / tables.size() / host.max_blocks;
  for (std::size_t t = 0; t < tables.size(); ++t) {
    for (std::size_t i = 0; i < plan.sequences.size(); ++i) {
      SCOPED_TRACE(testing::Message() << "table " << t << ", sequence " << i);
      const auto [group, part, num_parts] = tables[t];
      const Sequence& sequence = *plan.sequences[i].sequence;
      const std::span<const int> blocks = sequence.block_table(group);
      ASSERT_LE(static_cast<int>(blocks.size()), host.max_blocks);
      const auto row = all.subspan((t * num_rows + i) * host.max_blocks, blocks.size());
      const int first = sequence.blocks().first(group);
      bool is_consecutive = true;
      for (int b = first; b < static_cast<int>(blocks.size()); ++b) {
        ASSERT_EQ(row[b], blocks[b] * num_parts + part);
        is_consecutive &= b == first || row[b] == row[b - 1] + 1;
      }
      const std::int32_t slot = host.first_slots[t * plan.sequences.size() + i];
      const int from_zero = (row[first] - first) * block_size;
      ASSERT_EQ(slot, is_consecutive && from_zero >= 0 ? from_zero : -1);
    }
  }
}

// Expects both batches to be the same, except that their tables may be laid out differently.
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
  std::vector<int> windows = {0};
  std::vector<KvTable> tables = {{}};
};

// Runs a scheduler with arrivals, cancels, preemptions, forks, and shared and replaced blocks.
void expect_kept_equals_rebuilt(const Traffic& traffic) {
  const auto exec = make_exec({.backend = Backend::kReference}).value();
  Steps steps({.block_size = traffic.block_size,
               .group_windows = traffic.windows,
               .max_num_seqs = 7,
               .max_num_batched_tokens = 24,
               .max_model_len = 60},
              traffic.num_blocks, traffic.has_cache);
  StepInput kept(traffic.block_size, traffic.tables);
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
    StepInput fresh(traffic.block_size, traffic.tables);
    const HostBatch& host = kept.set(plan);
    expect_tables(plan, host, host.block_tables, traffic.tables, traffic.block_size);
    expect_same(host, fresh.set(plan), traffic.block_size);
    EXPECT_TRUE(std::ranges::equal(kept.scored_rows(), fresh.scored_rows()));
    // Some uploads are skipped: the device's table gets what it has missed with the next upload.
    if (steps.below(8) > 0) {
      const StepBatch batch = kept.upload(*exec);
      std::vector<std::int32_t> uploaded;
      for (int t = 0; t < static_cast<int>(traffic.tables.size()); ++t) {
        const auto table = batch.of_table(t).block_tables.span<std::int32_t>();
        uploaded.insert(uploaded.end(), table.begin(), table.end());
        const auto slots = batch.of_table(t).slot_mapping.span<std::int32_t>();
        EXPECT_TRUE(std::ranges::equal(
            slots, std::span(host.slot_mapping).subspan(t * plan.num_tokens, plan.num_tokens)));
      }
      expect_tables(plan, host, uploaded, traffic.tables, traffic.block_size);
    }
    if (::testing::Test::HasFailure()) return;
    if (steps.below(50) == 0) {
      steps.scheduler().fail(plan, internal_error("step"));
      kept.forget_rows();
      steps.scheduler().take_finished();
    } else {
      steps.commit(plan);
    }
  }
  const StepInputCounters& counters = kept.counters();
  EXPECT_GT(counters.num_paged_steps, 0u);
}

// The first sequences of two schedulers have the same arrival but different blocks.
TEST(StepInput, AnotherSchedulersSequencesAreNewOnes) {
  const SchedulerOptions options = {
      .block_size = 4, .max_num_seqs = 2, .max_num_batched_tokens = 64, .max_model_len = 64};
  StepInput input(4);
  for (const int num_tokens : {40, 6, 30}) {
    BlockPool pool(30);
    while (num_tokens == 6 && pool.num_free() > 20) pool.allocate();
    Scheduler scheduler(options, pool);
    GenerationRequest request;
    request.prompt_token_ids.assign(static_cast<std::size_t>(num_tokens), 1);
    request.sampling.max_tokens = 1;
    scheduler.add({.id = 1, .generation = std::move(request)});
    const Plan& plan = scheduler.plan();
    input.forget_rows();
    const HostBatch& host = input.set(plan);
    expect_tables(plan, host, host.block_tables, {{}}, 4);
  }
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

// A group that sees all, two layers of which share a place, and two groups with windows.
TEST(StepInput, KeptEqualsRebuiltWithSeveralTables) {
  for (const bool has_cache : {false, true}) {
    expect_kept_equals_rebuilt({.block_size = 4,
                                .num_blocks = 120,
                                .has_cache = has_cache,
                                .windows = {0, 7, 7},
                                .tables = {{0, 0, 2}, {0, 1, 2}, {1, 0, 1}, {2, 0, 1}}});
    if (HasFailure()) return;
  }
}

TEST(StepInput, CopiesAreMadeInEachPartOfABlock) {
  const auto exec = make_exec({.backend = Backend::kReference}).value();
  Steps steps({.block_size = 4, .max_num_seqs = 4, .max_model_len = 60}, 40, false);
  StepInput input(4, {{0, 0, 1}, {0, 0, 2}, {0, 1, 2}});
  steps.add(6, {.n = 2, .max_tokens = 4, .ignore_eos = true});
  steps.commit(steps.scheduler().plan());
  const Plan& plan = steps.scheduler().plan();  // one of the samples copies the prompt's last block
  ASSERT_EQ(plan.block_copies.size(), 1u);
  const auto [source, destination, num_tokens] = plan.block_copies.front();
  input.set(plan);
  const StepBatch batch = input.upload(*exec);
  using Words = std::vector<std::int32_t>;
  const auto copies_of = [&](int num_parts) {
    const auto words = input.copies_of(batch, num_parts).block_copies.span<std::int32_t>();
    return Words(words.begin(), words.end());
  };
  EXPECT_EQ(copies_of(1), (Words{source, destination, num_tokens}));
  EXPECT_EQ(copies_of(2), (Words{2 * source, 2 * destination, num_tokens, 2 * source + 1,
                                 2 * destination + 1, num_tokens}));
  EXPECT_EQ(input.copies_of(batch, 2).host->block_copies.size(), 2u);
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

// Returns the words that 64 decode steps of four sequences write after prompts of
// num_prompt_tokens.
std::uint64_t words_of_decodes(int num_prompt_tokens, const std::vector<int>& windows = {0}) {
  Steps steps({.group_windows = windows,
               .max_num_seqs = 4,
               .max_num_batched_tokens = 65536,
               .max_model_len = 16384},
              4096 * static_cast<int>(windows.size()), true);
  const auto exec = make_exec({.backend = Backend::kReference}).value();
  std::vector<KvTable> tables;
  for (int group = 0; group < static_cast<int>(windows.size()); ++group)
    tables.push_back({.group = group});
  StepInput input(16, tables);
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
  // Seven words per sequence and the end of query_start; a block every 16th step.
  EXPECT_EQ(words, 64 * (4 * 7 + 1) + 64 / 16 * 4u);
  // Each further group adds a slot, a first slot and a block's number.
  const std::uint64_t words_of_groups = words_of_decodes(100, {0, 64, 64});
  EXPECT_EQ(words_of_groups, words_of_decodes(10'000, {0, 64, 64}));
  EXPECT_EQ(words_of_groups, words + 2 * (64 * 4 * 2 + 64 / 16 * 4u));
}

}  // namespace
}  // namespace pagoda
