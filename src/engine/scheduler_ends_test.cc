// How sequences end: by tokens, lengths, cancels, errors, and with the samples of one prompt.
#include "engine/scheduler_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST_F(SchedulerTest, EndsAtEosAndStopIdsUnlessIgnored) {
  start({}, 100);
  add(2);
  step(1);
  auto sequence = take_one();
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kStop);
  EXPECT_EQ(sequence->stop_token_id(), 1);
  EXPECT_EQ(sequence->output().back(), 1);
  EXPECT_TRUE(sequence->block_table().empty());

  add(2, {.stop_token_ids = {kToken}});
  step(kToken);
  EXPECT_EQ(take_one()->stop_token_id(), kToken);

  add(2, {.max_tokens = 2, .ignore_eos = true});
  step(kEos);
  step(kEos);
  sequence = take_one();
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kLength);
  EXPECT_EQ(sequence->num_output_tokens(), 2);

  // The end-of-sequence id ends the answer if the request names it as a stop id.
  add(2, {.ignore_eos = true, .stop_token_ids = {kEos}});
  step(kEos);
  EXPECT_EQ(take_one()->finish_reason(), FinishReason::kStop);
}

TEST_F(SchedulerTest, AStopAtTheLastTokenIsAStop) {
  start({}, 100);
  add(2, {.max_tokens = 1});
  step(kEos);
  EXPECT_EQ(take_one()->finish_reason(), FinishReason::kStop);
}

TEST_F(SchedulerTest, EndsAtTheModelsLength) {
  start({.max_model_len = 5}, 100);
  add(3, {.max_tokens = 50});
  step();
  step();
  const auto sequence = take_one();
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kLength);
  EXPECT_EQ(sequence->num_tokens(), 5);
}

TEST_F(SchedulerTest, ACancelFreesBlocksAtOnceOutsideAStep) {
  start({}, 100);
  const RequestId a = add(2, {.n = 2}), b = add(2);
  step();
  EXPECT_EQ(pool_->num_free(), 98);
  step();  // the samples write different blocks from here on
  EXPECT_EQ(pool_->num_free(), 97);
  scheduler_->cancel(a, 1);
  EXPECT_EQ(pool_->num_free(), 98);
  EXPECT_EQ(take_one()->sample_index(), 1);
  scheduler_->cancel(12345);
  scheduler_->cancel(b, 1);
  EXPECT_TRUE(scheduler_->take_finished().empty());
  scheduler_->cancel(a);
  const auto sequence = take_one();
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(sequence->num_output_tokens(), 2);
  EXPECT_EQ(step(), (Planned{{b, 1}}));
}

TEST_F(SchedulerTest, SamplesShareThePromptsBlocksUntilTheyWrite) {
  start({.block_size = 4}, 100);
  const RequestId a = add(10, {.n = 3});
  EXPECT_EQ(scheduler_->num_waiting(), 3);
  EXPECT_EQ(step(), (Planned{{a, 10}}));
  EXPECT_EQ(scheduler_->num_running(), 3);
  EXPECT_EQ(pool_->num_free(), 97);
  const Plan& plan = scheduler_->plan();
  ASSERT_EQ(plan.sequences.size(), 3u);
  // Two samples copy the block; the last one to write keeps it.
  ASSERT_EQ(plan.block_copies.size(), 2u);
  const int shared = plan.block_copies[0].source;
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(plan.block_copies[i].source, shared);
    EXPECT_EQ(plan.block_copies[i].destination, plan.sequences[i].sequence->block_table()[2]);
    EXPECT_EQ(plan.block_copies[i].num_tokens, 2);
  }
  EXPECT_EQ(plan.sequences[2].sequence->block_table()[2], shared);
  EXPECT_EQ(pool_->num_free(), 95);
  scheduler_->commit(plan, std::vector<SampleOutcome>(3, {.token_id = kToken}));
  EXPECT_EQ(pool_->num_free(), 95);
  EXPECT_EQ(pool_->num_holders(shared), 1);
  scheduler_->cancel(a);
  EXPECT_EQ(pool_->num_free(), 100);
}

TEST_F(SchedulerTest, AsManySamplesStartAsHavePlacesAndNobodyWaitsForTheOthers) {
  start({.max_num_seqs = 4}, 100);
  const RequestId a = add(2);
  step();
  const RequestId b = add(3, {.n = 5, .max_tokens = 2});
  const RequestId c = add(2, {.max_tokens = 2});
  EXPECT_EQ(step(), (Planned{{a, 1}, {b, 3}}));
  EXPECT_EQ(scheduler_->num_running(), 4);
  EXPECT_EQ(scheduler_->num_waiting(), 3);
  EXPECT_EQ(step(), (Planned{{a, 1}, {b, 1}, {b, 1}, {b, 1}}));
  EXPECT_EQ(step(), (Planned{{a, 1}, {b, 3}, {b, 3}, {c, 2}}));
  EXPECT_EQ(scheduler_->num_waiting(), 0);
  step();
  std::vector<int> samples;
  for (const auto& sequence : scheduler_->take_finished()) {
    EXPECT_EQ(sequence->num_output_tokens(), 2);
    if (sequence->request_id() == b) samples.push_back(sequence->sample_index());
  }
  EXPECT_EQ(samples, (std::vector<int>{0, 1, 2, 3, 4}));
  scheduler_->cancel(a);
  EXPECT_EQ(pool_->num_free(), 100);
}

TEST_F(SchedulerTest, AnotherSampleGoesOnWhereTheFirstOneIsCancelled) {
  start({.block_size = 4, .max_num_batched_tokens = 8}, 100);
  const RequestId a = add(10, {.n = 3});
  EXPECT_EQ(step(), (Planned{{a, 8}}));
  scheduler_->cancel(a, 0);
  EXPECT_EQ(take_one()->sample_index(), 0);
  EXPECT_EQ(scheduler_->num_running(), 2);
  const Plan& plan = scheduler_->plan();
  EXPECT_EQ(plan.sequences[0].sequence->sample_index(), 1);
  EXPECT_EQ(plan.sequences[0].first_position, 8);
  EXPECT_EQ(plan.num_samples, 2);
  scheduler_->commit(plan, std::vector<SampleOutcome>(2, {.token_id = kToken}));
  EXPECT_EQ(step(), (Planned{{a, 1}, {a, 1}}));
}

TEST_F(SchedulerTest, ACancelDuringAStepWaitsForItsCommit) {
  start({}, 100);
  const RequestId a = add(2);
  const Plan& plan = scheduler_->plan();
  scheduler_->cancel(a);
  EXPECT_EQ(pool_->num_free(), 99);  // the step still writes there
  EXPECT_TRUE(scheduler_->take_finished().empty());
  const SampleOutcome outcome = {.token_id = kEos};
  scheduler_->commit(plan, std::span(&outcome, 1));
  EXPECT_EQ(pool_->num_free(), 100);
  const auto sequence = take_one();
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(sequence->num_output_tokens(), 0);
}

TEST_F(SchedulerTest, ASampleThatIsCancelledWhileThePromptIsComputedHasNoToken) {
  start({}, 100);
  const RequestId a = add(2, {.n = 2});
  const Plan& plan = scheduler_->plan();
  scheduler_->cancel(a, 1);
  scheduler_->commit(plan, std::vector<SampleOutcome>(2, {.token_id = kToken}));
  const auto sequence = take_one();
  ASSERT_NE(sequence, nullptr);
  EXPECT_EQ(sequence->sample_index(), 1);
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kCancelled);
  EXPECT_EQ(sequence->num_output_tokens(), 0);
  EXPECT_EQ(step(), (Planned{{a, 1}}));
}

TEST_F(SchedulerTest, ASequenceThatEndsGivesBackItsBlocksWithTheStepBehind) {
  start({}, 100);
  add(2);
  step();
  const Plan& plan = scheduler_->plan();
  const Plan* const ahead = scheduler_->plan_ahead();
  ASSERT_NE(ahead, nullptr);
  scheduler_->commit(plan, std::vector<SampleOutcome>(1, {.token_id = kEos}));
  EXPECT_EQ(pool_->num_free(), 99);  // the second step still writes there
  EXPECT_TRUE(scheduler_->take_finished().empty());
  scheduler_->commit(*ahead, std::vector<SampleOutcome>(1, {.token_id = kToken}));
  EXPECT_EQ(pool_->num_free(), 100);
  const auto sequence = take_one();
  ASSERT_NE(sequence, nullptr);
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kStop);
  EXPECT_EQ(sequence->num_output_tokens(), 2);
  EXPECT_EQ(scheduler_->counters().num_dropped_positions, 1u);
}

TEST_F(SchedulerTest, ARowsErrorEndsItsSequenceAlone) {
  start({}, 100);
  add(2);
  const RequestId b = add(2);
  const Plan& plan = scheduler_->plan();
  const std::vector<SampleOutcome> outcomes = {{.status = internal_error("NaN")}, {.token_id = 5}};
  scheduler_->commit(plan, outcomes);
  const auto sequence = take_one();
  EXPECT_EQ(sequence->finish_reason(), FinishReason::kError);
  EXPECT_EQ(sequence->error().message(), "NaN");
  EXPECT_EQ(step(), (Planned{{b, 1}}));
}

TEST_F(SchedulerTest, AFailedStepEndsItsSequencesAndFreesTheirBlocks) {
  start({.max_num_batched_tokens = 4}, 100);
  add(2);
  add(9);
  const RequestId waiting = add(2);
  scheduler_->fail(scheduler_->plan(), internal_error("the device is gone"));
  EXPECT_EQ(pool_->num_free(), 100);
  const auto finished = scheduler_->take_finished();
  ASSERT_EQ(finished.size(), 2u);
  for (const auto& sequence : finished) {
    EXPECT_EQ(sequence->finish_reason(), FinishReason::kError);
    EXPECT_EQ(sequence->error().message(), "the device is gone");
  }
  EXPECT_EQ(step(), (Planned{{waiting, 2}}));
}

// The contiguous layout: one block per sequence, as long as the model's context.
TEST_F(SchedulerTest, OneBlockASequenceIsTheContiguousLayout) {
  start({.block_size = 100, .max_num_seqs = 2}, 2);
  for (int i = 0; i < 3; ++i) add(50, {.max_tokens = 40});
  step();
  EXPECT_EQ(scheduler_->num_running(), 2);
  EXPECT_EQ(pool_->num_free(), 0);
  for (int i = 0; i < 39; ++i) step();
  EXPECT_EQ(scheduler_->take_finished().size(), 2u);
  EXPECT_EQ(step().size(), 1u);
}

TEST_F(SchedulerTest, AnIdleSchedulerPlansNothing) {
  start({}, 1);
  EXPECT_TRUE(scheduler_->idle());
  EXPECT_TRUE(scheduler_->plan().empty());
  EXPECT_EQ(scheduler_->plan().num_tokens, 0);
}

TEST_F(SchedulerTest, EndsTheProcessAtOurOwnMistakes) {
  start({}, 2);
  EXPECT_DEATH(
      scheduler_->add({.id = 7, .generation = {.prompt_token_ids = std::vector<int>(40, 9)}}),
      "request 7 can never run");
  add(2);
  const Plan& plan = scheduler_->plan();
  EXPECT_DEATH(scheduler_->commit(plan, {}), "expected 1 outcomes, got 0");
  EXPECT_DEATH(scheduler_->plan(), "before the last one is committed");
}

}  // namespace
}  // namespace pagoda
