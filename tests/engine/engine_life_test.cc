// Failures that an engine survives, and failures that it does not: steps that fail or throw, and a
// device that is lost.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/support/faulty_engine.h"
#include "tests/support/open_engine.h"
#include "tests/support/run_to_end.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

GenerationRequest greedy(std::vector<int> prompt, int max_tokens) {
  return {.prompt_token_ids = std::move(prompt),
          .sampling = {.temperature = 0, .max_tokens = max_tokens, .ignore_eos = true}};
}

// The parameter: with or without lookahead.
class EngineLife : public ::testing::TestWithParam<bool> {
 protected:
  void open(Fault of_forward, EngineOptions options = {}) {
    open(Faults{.of_forward = std::move(of_forward)}, std::move(options));
  }

  void open(Faults faults, EngineOptions options = {}) {
    options.max_model_len = 256;
    options.num_threads = 1;
    faults.has_lookahead = GetParam();
    engine_ = open_faulty_engine(kTinyLlama, options, std::move(faults));
    num_free_blocks_ = engine_->stats().num_free_blocks;
  }

  // Lets the steps begin that wait until the test has submitted all its requests.
  void let_steps_begin() {
    are_all_there_ = true;
    are_all_there_.notify_all();
  }

  // The end events that arrived, on any thread.
  struct Ends {
    std::mutex mutex;
    std::vector<OutputEvent> events;

    EventSink sink() {
      return [this](const OutputEvent& event) {
        const std::lock_guard lock(mutex);
        if (event.finish_reason != FinishReason::kNone) events.push_back(event);
      };
    }
    std::size_t count() {
      const std::lock_guard lock(mutex);
      return events.size();
    }
  };

  std::atomic<bool> are_all_there_ = false;
  Ends ends_;
  std::unique_ptr<Engine> engine_;
  int num_free_blocks_ = 0;
};

TEST_P(EngineLife, AFailedStepLosesOnlyItsOwnRequests) {
  // The fault hits the step that computes the second prompt. That prompt is alone in it, since the
  // engine has room for one sequence.
  int num_prefills = 0;
  open(
      [&](const Plan& plan) {
        const bool is_prefill = plan.sequences.front().first_position == 0;
        if (is_prefill && ++num_prefills == 2) return internal_error("bit rot");
        return ok_status();
      },
      {.max_num_seqs = 1});
  const std::vector<WholeAnswer> answers =
      run_to_end(*engine_, {greedy({5, 6}, 9), greedy({7, 8}, 9), greedy({5, 6}, 9)});
  EXPECT_EQ(answers[0].finish_reason, FinishReason::kLength);
  EXPECT_EQ(answers[1].finish_reason, FinishReason::kError);
  EXPECT_EQ(answers[1].error.message(), "[engine] a step failed: bit rot");
  EXPECT_EQ(answers[2].token_ids, answers[0].token_ids);
  const EngineStats stats = stats_at_rest(*engine_);
  EXPECT_TRUE(stats.healthy);
  EXPECT_EQ(stats.num_free_blocks, num_free_blocks_);
}

// Memory that a step would wait for is paged in early: before the first request, and ahead of the
// used blocks while these are used.
TEST_P(EngineLife, MemoryIsMadeReadyBeforeItIsUsed) {
  std::atomic<int> num_at_rest = 0, num_beside_decodes = 0;
  open(Faults{.prefault = [&](int first_block, bool beside_prompts) {
    if (first_block == 0) return ++num_at_rest < 3;
    if (ends_.count() == 0 && !beside_prompts) ++num_beside_decodes;
    return true;
  }});
  EXPECT_TRUE(eventually([&] { return num_at_rest == 3; }));
  for (int i = 0; i < 4; ++i) {
    ASSERT_TRUE(engine_->submit(greedy({5, 6, 7}, 240), ends_.sink()).ok());
  }
  EXPECT_TRUE(eventually([&] { return ends_.count() == 4; }));
  EXPECT_EQ(num_at_rest, 3);
  EXPECT_GT(num_beside_decodes, 0);
  engine_.reset();  // before the variables that its callback uses
}

// While part of a prompt is left, steps wait only for memory that is needed soon (beside_prompts).
// This also holds after a step of decodes alone, which is planned to measure its time.
TEST_P(EngineLife, APromptWaitsOnlyForMemoryThatIsNeededSoon) {
  int num_left = 0;                            // prompt tokens that are left
  int num_decode_steps = 0;                    // steps of decodes alone while some are left
  int num_beside_prompts = 0, num_others = 0;  // calls of prefault() while some are left
  open(Faults{.of_forward =
                  [&](const Plan& plan) {
                    const PlannedSequence& last = plan.sequences.back();
                    const int num_tokens = last.sequence->num_prompt_tokens();
                    if (!plan.is_decode()) num_left = num_tokens - last.context_len();
                    if (num_left > 1 && plan.is_decode()) ++num_decode_steps;
                    return ok_status();
                  },
              .prefault =
                  [&](int, bool beside_prompts) {
                    if (num_left > 1) ++(beside_prompts ? num_beside_prompts : num_others);
                    return false;
                  }},
       {.max_num_batched_tokens = 3});
  ASSERT_TRUE(engine_->submit(greedy({5, 6, 7}, 240), ends_.sink()).ok());
  ASSERT_TRUE(engine_->submit(greedy(std::vector<int>(200, 8), 1), ends_.sink()).ok());
  EXPECT_TRUE(eventually([&] { return ends_.count() == 2; }));
  engine_.reset();
  EXPECT_GT(num_decode_steps, 0);
  EXPECT_GT(num_beside_prompts, 0);
  EXPECT_EQ(num_others, 0);
}

// If memory is paged in slowly, steps still get at least half of the time.
TEST_P(EngineLife, StepsDoNotWaitForMemoryThatComesSlowly) {
  constexpr std::chrono::milliseconds kWait(5);
  std::atomic<int> num_waits = 0;
  open(Faults{.prefault = [&](int first_block, bool) {
    if (first_block == 0) return false;
    ++num_waits;
    std::this_thread::sleep_for(kWait);
    return true;
  }});
  const auto start = std::chrono::steady_clock::now();
  ASSERT_TRUE(engine_->submit(greedy({5, 6, 7}, 240), ends_.sink()).ok());
  EXPECT_TRUE(eventually([&] { return ends_.count() == 1; }));
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  engine_.reset();
  EXPECT_GT(num_waits, 0);
  EXPECT_LE(num_waits.load() * kWait, seconds / 2 + 2 * kWait);
}

TEST_P(EngineLife, WhatAStepThrowsIsItsFailure) {
  int num_steps = 0;
  open([&](const Plan&) -> Status {
    ++num_steps;
    if (num_steps == 3) throw std::runtime_error("a library is unhappy");
    if (num_steps == 6) throw std::bad_alloc();
    return ok_status();
  });
  const WholeAnswer first = run_to_end(*engine_, greedy({5, 6}, 9));
  EXPECT_EQ(first.finish_reason, FinishReason::kError);
  EXPECT_EQ(first.error.message(), "[engine] a step failed: a library is unhappy");
  EXPECT_EQ(first.token_ids.size(), 2U);
  const WholeAnswer second = run_to_end(*engine_, greedy({5, 6}, 9));
  EXPECT_EQ(second.error.code(), StatusCode::kResourceExhausted);
  EXPECT_THAT(second.error.message(), HasSubstr("out of memory"));
  EXPECT_EQ(run_to_end(*engine_, greedy({5, 6}, 9)).token_ids.size(), 9U);
  EXPECT_EQ(stats_at_rest(*engine_).num_free_blocks, num_free_blocks_);
}

// With lookahead the next step is running already.
TEST_P(EngineLife, AStepThatCannotBeReadTakesTheOneBehindItAlong) {
  int num_samples = 0;
  open(Faults{.of_sample = [&](const Plan&) -> Status {
    return ++num_samples == 4 ? internal_error("nothing came back") : ok_status();
  }});
  GenerationRequest two_samples = greedy({5, 6}, 90);
  two_samples.sampling.n = 2;
  const std::vector<WholeAnswer> answers =
      run_to_end(*engine_, std::vector<GenerationRequest>{two_samples});
  ASSERT_EQ(answers.size(), 2U);
  for (const WholeAnswer& answer : answers) {
    EXPECT_EQ(answer.finish_reason, FinishReason::kError);
    EXPECT_EQ(answer.error.message(), "[engine] a step failed: nothing came back");
    EXPECT_LE(answer.token_ids.size(), 3U);
  }
  EXPECT_EQ(run_to_end(*engine_, greedy({5, 6}, 9)).token_ids.size(), 9U);
  const EngineStats stats = stats_at_rest(*engine_);
  EXPECT_TRUE(stats.healthy);
  EXPECT_EQ(stats.num_free_blocks, num_free_blocks_);
  EXPECT_EQ(stats.num_lookahead_steps > 0, GetParam());
}

TEST_P(EngineLife, ADeviceThatIsGoneEndsEveryRequest) {
  int num_steps = 0;
  open(
      [&](const Plan&) {
        are_all_there_.wait(false);
        return ++num_steps > 3 ? unavailable("the device is gone") : ok_status();
      },
      {.max_num_seqs = 2});
  GenerationRequest two_samples = greedy({5, 6}, 200);
  two_samples.sampling.n = 2;
  EXPECT_TRUE(engine_->submit(two_samples, ends_.sink()).ok());
  for (int i = 0; i < 3; ++i)  // wait in the queue
    EXPECT_TRUE(engine_->submit(greedy({7}, 200), ends_.sink()).ok());
  let_steps_begin();
  eventually([&] { return ends_.count() >= 5; });
  ASSERT_EQ(ends_.count(), 5U);
  for (const OutputEvent& event : ends_.events) {
    EXPECT_EQ(event.finish_reason, FinishReason::kError);
    EXPECT_EQ(event.error.code(), StatusCode::kUnavailable);
    EXPECT_THAT(event.error.message(), HasSubstr("the device is gone"));
  }
  // Counters keep their values.
  const EngineStats stats = engine_->stats();
  EXPECT_FALSE(stats.healthy);
  EXPECT_GT(stats.num_steps, 0u);
  EXPECT_GT(stats.runner.num_logits_rows, 0u);
  EXPECT_GT(stats.num_blocks, 0);
  EXPECT_EQ(stats.num_free_blocks, stats.num_blocks);
  EXPECT_EQ(engine_->submit(greedy({7}, 1), ends_.sink()).status().code(),
            StatusCode::kUnavailable);
  engine_->cancel(1);
  engine_->drain(60);  // returns at once: nothing is left
  EXPECT_EQ(engine_->stats().num_running + engine_->stats().num_waiting, 0);
}

TEST_P(EngineLife, ASinkThatThrowsIsTheEngineUndone) {
  open([&](const Plan&) {
    are_all_there_.wait(false);
    return ok_status();
  });
  EXPECT_TRUE(engine_->submit(greedy({5}, 200), ends_.sink()).ok());
  EXPECT_TRUE(engine_
                  ->submit(greedy({6}, 200),
                           [](const OutputEvent& event) {
                             if (event.finish_reason == FinishReason::kNone)
                               throw std::length_error("no room for events");
                           })
                  .ok());
  let_steps_begin();
  eventually([&] { return ends_.count() >= 1; });
  ASSERT_EQ(ends_.count(), 1U);
  EXPECT_THAT(ends_.events[0].error.message(), HasSubstr("no room for events"));
  EXPECT_FALSE(engine_->stats().healthy);
}

INSTANTIATE_TEST_SUITE_P(All, EngineLife, ::testing::Bool(), [](const auto& info) {
  return std::string(info.param ? "with_lookahead" : "without");
});

}  // namespace
}  // namespace pagoda
