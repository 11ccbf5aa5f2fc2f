#include "engine/scheduler_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST_F(SchedulerTest, TakesDecodesFirstAndFillsTheBudgetWithChunks) {
  start({.max_num_batched_tokens = 10}, 100);
  const RequestId a = add(4), b = add(13), c = add(3);
  EXPECT_EQ(step(), (Planned{{a, 4}, {b, 6}}));
  EXPECT_EQ(step(), (Planned{{a, 1}, {b, 7}, {c, 2}}));
  // A prompt's last token is planned like any decode.
  EXPECT_EQ(step(), (Planned{{a, 1}, {b, 1}, {c, 1}}));
  EXPECT_EQ(scheduler_->num_running(), 3);
}

TEST_F(SchedulerTest, PlansRowsToSampleOnlyAtTheEndOfWhatIsKnown) {
  start({.max_num_batched_tokens = 4}, 100);
  add(6);
  const Plan& plan = scheduler_->plan();
  EXPECT_FALSE(plan.sequences[0].samples);
  EXPECT_EQ(plan.num_samples, 0);
  scheduler_->commit(plan, {});
  scheduler_->plan();
  EXPECT_EQ(plan.sequences[0].first_position, 4);
  EXPECT_EQ(plan.sequences[0].context_len(), 6);
  EXPECT_TRUE(plan.sequences[0].samples);
  EXPECT_EQ(plan.num_samples, 1);
}

// Each chat has one run of consecutive blocks. All are in the lowest blocks of a large pool,
// because memory is only cleared when it is first written.
TEST_F(SchedulerTest, ChatsLieBehindOneAnother) {
  struct Chats {
    int max_tokens;
    int num_blocks;  // blocks that eight chats of 60 prompt tokens and their answers may use
  };
  for (const auto& [max_tokens, num_blocks] : {Chats{128, 8 * 12}, Chats{8000, 8 * (4 + 64)}}) {
    SCOPED_TRACE(max_tokens);
    start({.block_size = 16, .max_num_seqs = 8, .max_model_len = 8192}, 10000);
    for (int i = 0; i < 8; ++i) add(60, {.max_tokens = max_tokens});
    int num_steps = 0;
    for (; num_steps < 900 && !scheduler_->idle(); ++num_steps) {
      const Plan& plan = scheduler_->plan();
      for (const PlannedSequence& planned : plan.sequences) {
        const auto blocks = planned.sequence->block_table();
        ASSERT_EQ(blocks.back() - blocks.front(), static_cast<int>(blocks.size()) - 1);
        ASSERT_LT(blocks.back(), num_blocks);
      }
      scheduler_->commit(plan, std::vector<SampleOutcome>(plan.num_samples, {.token_id = kToken}));
    }
    EXPECT_GE(num_steps, 127);
  }
}

TEST_F(SchedulerTest, ScoresEveryPromptTokenButTheFirstOnSampleZero) {
  start({.max_num_batched_tokens = 4}, 100);
  add(6, {.n = 2, .prompt_logprobs = 0});
  // Rows 0 to 3 score tokens 1 to 4; row 4 scores token 5, and row 5 samples.
  const Plan& plan = scheduler_->plan();
  EXPECT_EQ(plan.sequences[0].num_read_rows, 4);
  scheduler_->commit(plan, {});
  scheduler_->plan();
  EXPECT_EQ(plan.sequences[0].num_read_rows, 1);
  EXPECT_TRUE(plan.sequences[0].samples);
  EXPECT_EQ(plan.sequences.size(), 1u);
  EXPECT_EQ(plan.num_samples, 2);
}

TEST_F(SchedulerTest, APromptThatIsOnlyScoredEndsWithoutAToken) {
  start({.max_num_batched_tokens = 4}, 100);
  add(6, {.max_tokens = 0, .prompt_logprobs = 0});
  step();
  const Plan& plan = scheduler_->plan();
  EXPECT_EQ(plan.num_samples, 0);
  EXPECT_EQ(plan.sequences[0].num_read_rows, 1);
  scheduler_->commit(plan, {});
  const auto sequence = take_one();
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kLength);
  EXPECT_EQ(sequence->num_output_tokens(), 0);
  EXPECT_TRUE(scheduler_->idle());
}

TEST_F(SchedulerTest, TakesBlocksAsTokensCome) {
  start({.block_size = 4}, 100);
  add(4, {.max_tokens = 30});
  EXPECT_EQ(pool_->num_free(), 100);
  step();
  EXPECT_EQ(pool_->num_free(), 99);
  step();  // the token at position 4
  EXPECT_EQ(pool_->num_free(), 98);
  step();
  EXPECT_EQ(pool_->num_free(), 98);
}

TEST_F(SchedulerTest, AdmitsWhatFitsBesideABlockForEachThatRuns) {
  start({.block_size = 4}, 5);
  const RequestId a = add(4, {.max_tokens = 9});  // 1 block now, 1 to grow into, 3 at its longest
  const RequestId b = add(8, {.max_tokens = 2});  // 2 now, 1 to grow into
  const RequestId c = add(1, {.max_tokens = 1});  // 1 block
  EXPECT_EQ(step(), (Planned{{a, 4}, {b, 8}}));
  EXPECT_EQ(scheduler_->num_waiting(), 1);
  EXPECT_EQ(step(), (Planned{{a, 1}, {b, 1}}));
  EXPECT_EQ(take_one()->request_id(), b);
  EXPECT_EQ(step(), (Planned{{a, 1}, {c, 1}}));
}

TEST_F(SchedulerTest, PreemptsTheLastArrivalOfTheLowestPriority) {
  start({.block_size = 4}, 6);
  const RequestId low = add(4, {.max_tokens = 15}, 1);  // admitted last: 1 block
  const RequestId a = add(4, {.max_tokens = 9});
  const RequestId b = add(4, {.max_tokens = 9});
  EXPECT_EQ(step(), (Planned{{a, 4}, {b, 4}, {low, 4}}));
  for (int i = 0; i < 4; ++i) EXPECT_EQ(step(), (Planned{{a, 1}, {b, 1}, {low, 1}}));
  EXPECT_EQ(pool_->num_free(), 0);
  // The tokens at position 8 of a and b take the blocks of `low`, which has 4 + 5 tokens by then.
  EXPECT_EQ(step(), (Planned{{a, 1}, {b, 1}}));
  EXPECT_EQ(scheduler_->num_waiting(), 1);
  EXPECT_EQ(scheduler_->counters().num_preemptions, 1u);
  for (int i = 0; i < 3; ++i) EXPECT_EQ(step(), (Planned{{a, 1}, {b, 1}}));
  EXPECT_EQ(scheduler_->take_finished().size(), 2u);
  EXPECT_EQ(step(), (Planned{{low, 9}}));
  for (int i = 0; i < 9; ++i) EXPECT_EQ(step(), (Planned{{low, 1}}));
  const auto sequence = take_one();
  EXPECT_EQ(sequence->num_output_tokens(), 15);
  EXPECT_EQ(pool_->num_free(), 6);
}

TEST_F(SchedulerTest, ABlockOfItsOwnNeverHasToBeTakenFromTheFirst) {
  start({.block_size = 1, .max_model_len = 8}, 8);
  const RequestId a = add(1, {.max_tokens = 7});
  const RequestId b = add(1, {.max_tokens = 7});
  int num_of_a = 0;
  for (int i = 0; i < 8; ++i) {
    for (const auto& [id, num_tokens] : step()) num_of_a += id == a;
    if (num_of_a == 7) break;
  }
  EXPECT_EQ(num_of_a, 7);  // `a` runs in every step
  EXPECT_EQ(take_one()->request_id(), a);
  while (!scheduler_->idle()) step();
  const auto sequence = take_one();
  EXPECT_EQ(sequence->request_id(), b);
  EXPECT_EQ(sequence->num_output_tokens(), 7);
  EXPECT_GE(scheduler_->counters().num_preemptions, 1u);
}

TEST_F(SchedulerTest, ChunksBesideDecodesAreAsLongAsTheMeasuredCostAllows) {
  start({.max_num_batched_tokens = 64}, 100);
  using Step = std::pair<int, int>;
  add(8);
  EXPECT_EQ(timed_step(), (Step{0, 8}));
  add(20);
  EXPECT_EQ(timed_step(), (Step{1, 0}));  // a step of only decodes is measured first
  for (int i = 0; i < 5; ++i) EXPECT_EQ(timed_step(), (Step{1, 4}));
  EXPECT_EQ(timed_step(), (Step{2, 0}));
  add(20);
  add(16);
  EXPECT_EQ(timed_step(), (Step{2, 15}));  // two wait: a longer chunk
  EXPECT_EQ(timed_step(), (Step{2, 15}));  // the end of one, the beginning of the other
  EXPECT_EQ(timed_step(), (Step{3, 4}));
}

TEST_F(SchedulerTest, ChunksBesideDecodesEndWithATile) {
  using Step = std::pair<int, int>;
  for (const auto& [row_tile, beside_one, beside_two] :
       {std::tuple(1, 4, 4), std::tuple(2, 3, 4), std::tuple(3, 4, 4), std::tuple(4, 3, 4),
        std::tuple(8, 4, 4)}) {
    SCOPED_TRACE(row_tile);
    start({.max_num_batched_tokens = 64, .row_tile = row_tile}, 100);
    add(8);
    EXPECT_EQ(timed_step(), (Step{0, 8}));
    add(2);
    EXPECT_EQ(timed_step(), (Step{1, 0}));  // a step of only decodes is measured first
    EXPECT_EQ(timed_step(), (Step{1, 2}));
    const RequestId late = add(20);
    EXPECT_EQ(timed_step(), (Step{2, beside_two}));
    scheduler_->cancel(late - 1);
    EXPECT_EQ(timed_step(), (Step{1, beside_one}));
  }
}

TEST_F(SchedulerTest, PromptsGetEveryOtherStepWhereDecodesFillTheBudget) {
  start({.max_num_seqs = 8, .max_num_batched_tokens = 8}, 100);
  for (int i = 0; i < 7; ++i) add(1, {.max_tokens = 90});
  EXPECT_EQ(step().size(), 7u);
  const RequestId late = add(20, {.max_tokens = 90});
  EXPECT_EQ(step().size(), 8u);  // one token of the prompt
  EXPECT_EQ(step(), (Planned{{late, 8}}));
  EXPECT_EQ(step().size(), 8u);
  EXPECT_EQ(step(), (Planned{{late, 8}}));
  EXPECT_EQ(step().back(), (std::pair{late, 1}));
  EXPECT_EQ(step().back(), (std::pair{late, 1}));  // its last prompt token is a decode
}

TEST_F(SchedulerTest, KnowsWhatNeverFits) {
  start({.block_size = 4, .max_model_len = 30}, 5);
  EXPECT_EQ(scheduler_->check(4, {.max_tokens = 17}), Admission::kAdmitted);  // 20 tokens stored
  EXPECT_EQ(scheduler_->check(4, {.max_tokens = 18}), Admission::kNeverFits);
  EXPECT_EQ(scheduler_->check(21, {.max_tokens = 1}), Admission::kNeverFits);
  start({.block_size = 4, .max_model_len = 21}, 5);
  EXPECT_EQ(scheduler_->check(4, {.max_tokens = 1 << 30}), Admission::kAdmitted);
  EXPECT_EQ(scheduler_->check(4, {.max_tokens = 2147483647}), Admission::kAdmitted);
}

TEST_F(SchedulerTest, NothingOvertakesTheHeadOfTheQueue) {
  start({.block_size = 4}, 4);
  const RequestId a = add(8, {.max_tokens = 5});  // 2 blocks, and 1 to grow into
  const RequestId b = add(8, {.max_tokens = 5});  // 2 more: has to wait
  const RequestId c = add(1, {.max_tokens = 1});  // 1 more: would fit
  EXPECT_EQ(step(), (Planned{{a, 8}}));
  EXPECT_EQ(scheduler_->num_waiting(), 2);
  scheduler_->cancel(b);
  EXPECT_EQ(step(), (Planned{{a, 1}, {c, 1}}));
}

TEST_F(SchedulerTest, LowerPriorityValuesRunFirst) {
  start({.max_num_seqs = 1}, 100);
  const RequestId late = add(2, {.max_tokens = 1}, 1);
  const RequestId first = add(2, {.max_tokens = 1}, -1);
  const RequestId second = add(2, {.max_tokens = 1}, -1);
  for (const RequestId id : {first, second, late}) EXPECT_EQ(step(), (Planned{{id, 2}}));
}

// Clients that always have a request of the best priority waiting cannot keep others waiting
// forever.
TEST_F(SchedulerTest, NobodyIsOvertakenForever) {
  start({.max_num_seqs = 1}, 100);
  const auto urgent = [&] { add(2, {.max_tokens = 4}, -1); };
  urgent();
  const RequestId patient = add(2, {.max_tokens = 4});
  const RequestId last = add(2, {.max_tokens = 4}, 1);
  std::vector<int> turns;  // the steps that computed `patient` or `last`
  for (int i = 0; i < 2200; ++i) {
    if (scheduler_->num_waiting() < 3) urgent();
    const Planned planned = step();
    ASSERT_EQ(planned.size(), 1u);
    if (planned[0].first == patient || planned[0].first == last) turns.push_back(i);
  }
  // Each of the two starts within 1,024 steps and the length of an answer. Once started, it is not
  // put off again.
  ASSERT_EQ(turns.size(), 8u);
  EXPECT_LT(turns[0], 1024 + 4);
  EXPECT_EQ(turns[3], turns[0] + 3);
  EXPECT_GT(turns[4], 1024);
  EXPECT_LT(turns[4], turns[3] + 1024 + 5);
}

TEST_F(SchedulerTest, ATurnComesAfterSoManyStepsOfOvertaking) {
  start({.max_num_seqs = 1, .num_steps_per_turn = 3}, 100);
  const auto add_urgent = [&] { return add(2, {.max_tokens = 1}, -1); };
  const RequestId patient = add(2, {.max_tokens = 1});
  for (int i = 0; i < 3; ++i) {
    const RequestId urgent = add_urgent();
    EXPECT_EQ(step(), (Planned{{urgent, 2}}));
  }
  add_urgent();
  EXPECT_EQ(step(), (Planned{{patient, 2}}));
}

TEST_F(SchedulerTest, NeverRunsMoreSequencesThanTheBudgetHasTokens) {
  start({.max_num_seqs = 8, .max_num_batched_tokens = 2}, 100);
  for (int i = 0; i < 4; ++i) add(1, {.max_tokens = 3});
  step();
  EXPECT_EQ(scheduler_->num_running(), 2);
  EXPECT_EQ(step(), (Planned{{0, 1}, {1, 1}}));
}

// Gemma 3 1B: four layers that see all, and six groups of four with a window of 512. Memory for two
// contexts of 32,768 tokens in all 26 layers decodes eleven sequences without a preemption.
TEST_F(SchedulerTest, AWindowsMemoryIsAWindow) {
  constexpr int kBlocksOfAllLayers = 2 * 2048;
  start({.group_windows = {0, 512, 512, 512, 512, 512, 512}, .max_model_len = 32'768},
        kBlocksOfAllLayers * 26 / 4);
  constexpr int kNumSequences = 11;
  for (int i = 0; i < kNumSequences; ++i) add(32'600 + i, {.max_tokens = 150, .ignore_eos = true});
  std::size_t most_at_once = 0;
  while (!scheduler_->idle()) most_at_once = std::max(most_at_once, step().size());
  EXPECT_EQ(most_at_once, std::size_t{kNumSequences});
  EXPECT_EQ(scheduler_->counters().num_preemptions, 0u);
  EXPECT_EQ(scheduler_->take_finished().size(), std::size_t{kNumSequences});
  EXPECT_EQ(scheduler_->num_free_blocks(), pool_->num_blocks());
}

TEST_F(SchedulerTest, ARequestNeedsNoMoreThanItsWindows) {
  // Blocks for 16 tokens of the layers that see all, and three for the window: 17 tokens do not
  // fit.
  start({.block_size = 4, .group_windows = {0, 6}, .max_model_len = 64}, 7);
  EXPECT_EQ(scheduler_->check(16, {.max_tokens = 1}), Admission::kAdmitted);
  EXPECT_EQ(scheduler_->check(17, {.max_tokens = 1}), Admission::kNeverFits);
  // It is computed in chunks that are as long as the free blocks allow.
  const RequestId id = add(16, {.max_tokens = 1});
  Planned planned;
  while (!scheduler_->idle()) {
    for (const auto& part : step()) planned.push_back(part);
  }
  EXPECT_EQ(planned, (Planned{{id, 12}, {id, 4}}));
}

}  // namespace
}  // namespace pagoda
