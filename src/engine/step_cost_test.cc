#include "engine/step_cost.h"

#include <gtest/gtest.h>

namespace pagoda {
namespace {

// A machine whose steps cost what the model says: `decode`, and for a chunk `token` *
// (`first_tokens` + its number of tokens).
struct Machine {
  double decode = 0.004;
  double token = 0.0005;
  double first_tokens = 0;

  double step(StepCost& cost, bool decodes, int num_tokens, double stall = 0) const {
    const double of_prefill = num_tokens > 0 ? token * (first_tokens + num_tokens) : 0;
    const double seconds = (decodes ? decode : 0) + of_prefill;
    cost.observe(decodes ? 4 : 0, num_tokens, seconds + stall);
    return seconds;
  }
};

TEST(StepCost, LimitsNothingThatNobodyMeasures) {
  StepCost cost;
  cost.observe(4, 0, 0);
  cost.observe(4, 100, 0);
  EXPECT_EQ(cost.max_prefill_tokens(1), StepCost::kUnlimited);
  EXPECT_FALSE(cost.wants_decodes_alone(4));
}

TEST(StepCost, AsksForAStepOfDecodesBeforeItsFirstMixedOne) {
  StepCost cost;
  const Machine machine;
  machine.step(cost, false, 512);
  EXPECT_TRUE(cost.wants_decodes_alone(1));
  EXPECT_FALSE(cost.wants_decodes_alone(0));
  machine.step(cost, true, 0);
  EXPECT_FALSE(cost.wants_decodes_alone(4));
  EXPECT_EQ(cost.max_prefill_tokens(1), 6);  // 0.87 * 4 ms / 0.5 ms
  EXPECT_EQ(cost.max_prefill_tokens(2), 24);
  EXPECT_EQ(cost.max_prefill_tokens(6), 93);
  EXPECT_EQ(cost.max_prefill_tokens(100), 93);
}

TEST(StepCost, AMixedStepTakesAtMostSoManyDecodeSteps) {
  for (const double token : {0.00001, 0.0005, 0.003}) {
    for (const int num_prompts : {1, 3, 9}) {
      StepCost cost;
      const Machine machine = {.token = token};
      machine.step(cost, false, 64);
      machine.step(cost, true, 0);
      for (int i = 0; i < 100; ++i) {
        const double seconds = machine.step(cost, true, cost.max_prefill_tokens(num_prompts));
        EXPECT_LE(seconds, StepCost::max_mixed_step(num_prompts) * machine.decode);
      }
    }
  }
}

// Chunks that, with four decodes, fill tiles of six rows. A load has left room for two tokens per
// step. Steps of two tokens tell little about the cost of eight, because the fixed cost dominates.
TEST(StepCost, ChunksGrowAgainAfterALoad) {
  StepCost cost;
  Machine machine = {.decode = 0.005, .token = 0.0003, .first_tokens = 5};
  const auto mixed_step = [&] {
    const int affordable = cost.max_prefill_tokens(1);
    const int num_tokens = affordable < 2 ? affordable : 2 + (affordable - 2) / 6 * 6;
    machine.step(cost, true, num_tokens);
    return num_tokens;
  };
  machine.step(cost, false, 512);
  machine.step(cost, true, 0);
  for (int i = 0; i < 40; ++i) mixed_step();
  EXPECT_EQ(mixed_step(), 8);
  machine.token *= 1.5;
  for (int i = 0; i < 40; ++i) mixed_step();
  EXPECT_EQ(mixed_step(), 2);
  machine.token /= 1.5;
  for (int i = 0; i < 40; ++i) mixed_step();
  EXPECT_EQ(mixed_step(), 8);
}

TEST(StepCost, OneTokenIsTheLeast) {
  StepCost cost;
  const Machine machine = {.token = 1};
  machine.step(cost, false, 1);
  machine.step(cost, true, 0);
  EXPECT_EQ(cost.max_prefill_tokens(1), 1);
}

TEST(StepCost, FollowsALoadAndShrugsOffAStall) {
  StepCost cost;
  Machine machine;
  machine.step(cost, false, 512);
  machine.step(cost, true, 0);
  machine.step(cost, true, 0, /*stall=*/0.05);
  EXPECT_EQ(cost.decode_step_s(), 0.004);
  machine.decode = 0.016;
  for (int i = 0; i < 2; ++i) machine.step(cost, true, 0);
  EXPECT_EQ(cost.decode_step_s(), 0.016);
}

// The first prompt is slowed by the system, which pages in memory for the first keys and values.
TEST(StepCost, ForgetsWhatTheFirstPromptWaitedFor) {
  StepCost cost;
  const Machine machine;
  machine.step(cost, false, 256, /*stall=*/0.3);
  machine.step(cost, true, 0);
  for (int i = 0; i < 3; ++i) machine.step(cost, true, cost.max_prefill_tokens(1));
  EXPECT_EQ(cost.max_prefill_tokens(1), 6);  // as AsksForAStepOfDecodesBeforeItsFirstMixedOne
}

TEST(StepCost, ChunksFollowALoad) {
  StepCost cost;
  Machine machine = {.token = 0.0002};
  machine.step(cost, false, 512);
  machine.step(cost, true, 0);
  for (int i = 0; i < 20; ++i) machine.step(cost, true, cost.max_prefill_tokens(1));
  machine.token *= 4;
  for (int i = 0; i < 16; ++i) machine.step(cost, true, cost.max_prefill_tokens(1));
  const double seconds = machine.step(cost, true, cost.max_prefill_tokens(1));
  EXPECT_LE(seconds, StepCost::max_mixed_step(1) * machine.decode);
}

TEST(StepCost, MeasuresDecodesAgainAfterAWhileAndUnderManyMore) {
  StepCost cost;
  const Machine machine;
  machine.step(cost, false, 512);
  machine.step(cost, true, 0);
  EXPECT_TRUE(cost.wants_decodes_alone(11));
  EXPECT_FALSE(cost.wants_decodes_alone(10));
  for (int i = 0; i < StepCost::kRemeasureSteps; ++i) {
    EXPECT_FALSE(cost.wants_decodes_alone(4)) << i;
    machine.step(cost, true, 5);
  }
  EXPECT_TRUE(cost.wants_decodes_alone(4));
  machine.step(cost, true, 0);
  EXPECT_FALSE(cost.wants_decodes_alone(4));
}

}  // namespace
}  // namespace pagoda
