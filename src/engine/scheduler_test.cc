#include "engine/scheduler.h"

#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <vector>

namespace pagoda {
namespace {

constexpr int kEos = 0;
constexpr int kToken = 5;  // ends nothing

// A scheduler with a pool, and a runner that samples one token for every row.
class SchedulerTest : public ::testing::Test {
 protected:
  void start(SchedulerOptions options, int num_blocks) {
    if (options.max_model_len == 0) options.max_model_len = 100;
    options.eos_token_ids = {kEos, 1};
    pool_.emplace(num_blocks);
    scheduler_.emplace(options, *pool_);
  }

  RequestId add(int num_prompt_tokens, const SamplingParams& params = {}, int priority = 0) {
    EXPECT_EQ(scheduler_->check(num_prompt_tokens, params), Admission::kAdmitted);
    const RequestId id = next_id_++;
    scheduler_->add({.id = id,
                     .generation = {.prompt_token_ids = std::vector<int>(num_prompt_tokens, 9),
                                    .sampling = params,
                                    .priority = priority}});
    return id;
  }

  // One step; what was planned, as (request, tokens).
  std::vector<std::pair<RequestId, int>> step(int token_id = kToken) {
    const Plan& plan = scheduler_->plan();
    std::vector<std::pair<RequestId, int>> planned;
    for (const PlannedSequence& p : plan.sequences) {
      planned.emplace_back(p.sequence->request_id(), p.num_new_tokens);
    }
    scheduler_->commit(plan, std::vector<SampleOutcome>(plan.num_samples, {.token_id = token_id}));
    return planned;
  }

  // One step, which costs 4 ms where it has decodes, and 1 ms a prompt token; how many it had of
  // both.
  std::pair<int, int> timed_step() {
    const Plan& plan = scheduler_->plan();
    const int num_prefill_tokens = plan.num_tokens - plan.num_decodes;
    const double seconds = 0.001 * num_prefill_tokens + (plan.num_decodes > 0 ? 0.005 : 0);
    scheduler_->commit(plan, std::vector<SampleOutcome>(plan.num_samples, {.token_id = kToken}),
                       seconds);
    return {plan.num_decodes, num_prefill_tokens};
  }

  std::unique_ptr<Sequence> take_one() {
    auto finished = scheduler_->take_finished();
    EXPECT_EQ(finished.size(), 1u);
    return finished.empty() ? nullptr : std::move(finished[0]);
  }

  using Planned = std::vector<std::pair<RequestId, int>>;
  std::optional<BlockPool> pool_;
  std::optional<Scheduler> scheduler_;
  RequestId next_id_ = 0;
};

TEST_F(SchedulerTest, TakesDecodesFirstAndFillsTheBudgetWithChunks) {
  start({.max_num_batched_tokens = 10}, 100);
  const RequestId a = add(4), b = add(13), c = add(3);
  EXPECT_EQ(step(), (Planned{{a, 4}, {b, 6}}));
  EXPECT_EQ(step(), (Planned{{a, 1}, {b, 7}, {c, 2}}));
  // A prompt's last token is a decode as any other.
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

// Each in one run of blocks to its end, and all in the lowest of a large pool, whose memory is
// cleared where it is first written.
TEST_F(SchedulerTest, ChatsLieBehindOneAnother) {
  struct Chats {
    int max_tokens;
    int num_blocks;  // that eight are spread over: of 60 tokens and the answer's
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
  EXPECT_EQ(plan.sequences[0].num_scored_rows, 4);
  scheduler_->commit(plan, {});
  scheduler_->plan();
  EXPECT_EQ(plan.sequences[0].num_scored_rows, 1);
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
  EXPECT_EQ(plan.sequences[0].num_scored_rows, 1);
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
  const RequestId c = add(1, {.max_tokens = 1});  // 1
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
  // Positions 8 of a and b take the blocks of `low`, which has 4 + 5 tokens by now.
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
  EXPECT_EQ(num_of_a, 7);  // in every step
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
  EXPECT_EQ(timed_step(), (Step{1, 0}));  // measured first
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
    EXPECT_EQ(timed_step(), (Step{1, 0}));  // measured first
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
  const RequestId b = add(8, {.max_tokens = 5});  // 2: has to wait
  const RequestId c = add(1, {.max_tokens = 1});  // 1: would fit
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

// Clients that always have another request of the best priority keep nobody out for good.
TEST_F(SchedulerTest, NobodyIsOvertakenForever) {
  start({.max_num_seqs = 1}, 100);
  const auto urgent = [&] { add(2, {.max_tokens = 4}, -1); };
  urgent();
  const RequestId patient = add(2, {.max_tokens = 4});
  const RequestId last = add(2, {.max_tokens = 4}, 1);
  std::vector<int> turns;  // the steps in which one of them was computed
  for (int i = 0; i < 2200; ++i) {
    if (scheduler_->num_waiting() < 3) urgent();
    const Planned planned = step();
    ASSERT_EQ(planned.size(), 1u);
    if (planned[0].first == patient || planned[0].first == last) turns.push_back(i);
  }
  // Within 1,024 steps and an answer's, each; once it has begun, it is not put off again.
  ASSERT_EQ(turns.size(), 8u);
  EXPECT_LT(turns[0], 1024 + 4);
  EXPECT_EQ(turns[3], turns[0] + 3);
  EXPECT_GT(turns[4], 1024);
  EXPECT_LT(turns[4], turns[3] + 1024 + 5);
}

TEST_F(SchedulerTest, NeverRunsMoreSequencesThanTheBudgetHasTokens) {
  start({.max_num_seqs = 8, .max_num_batched_tokens = 2}, 100);
  for (int i = 0; i < 4; ++i) add(1, {.max_tokens = 3});
  step();
  EXPECT_EQ(scheduler_->num_running(), 2);
  EXPECT_EQ(step(), (Planned{{0, 1}, {1, 1}}));
}

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

  // A stop id that a request names is its own wish.
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
  step();  // the samples go apart
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
  // The last one to write has the block for itself.
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

// The contiguous layout: one block a sequence, as long as the model's context.
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
