// What an engine survives and what it does not: steps that fail, that throw, and a device that is
// gone.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <stdexcept>
#include <thread>

#include "tests/support/faulty_engine.h"
#include "tests/support/run_to_end.h"

namespace pagoda {
namespace {

using ::testing::HasSubstr;

const std::string kTinyLlama = std::string(PAGODA_SOURCE_DIR) + "/tests/golden/data/tiny-llama";

GenerationRequest greedy(std::vector<int> prompt, int max_tokens) {
  return {.prompt_token_ids = std::move(prompt),
          .sampling = {.temperature = 0, .max_tokens = max_tokens, .ignore_eos = true}};
}

class EngineLife : public ::testing::Test {
 protected:
  void open(Fault fault, EngineOptions options = {}) {
    options.max_model_len = 256;
    options.num_threads = 1;
    engine_ = open_faulty_engine(kTinyLlama, options, std::move(fault));
    num_free_blocks_ = engine_->stats().num_free_blocks;
  }

  // The step after the last event may still be counted: waits until the engine rests.
  EngineStats stats_at_rest() {
    EngineStats stats = engine_->stats();
    for (int i = 0; i < 10000 && stats.num_running + stats.num_waiting > 0; ++i) {
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
      stats = engine_->stats();
    }
    return stats;
  }

  // Ends that came, by any thread.
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

  Ends ends_;
  std::unique_ptr<Engine> engine_;
  int num_free_blocks_ = 0;
};

TEST_F(EngineLife, AFailedStepLosesOnlyItsOwnRequests) {
  // The fault hits the step in which the second prompt is computed, alone: the engine has room for
  // one.
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
  const EngineStats stats = stats_at_rest();
  EXPECT_TRUE(stats.healthy);
  EXPECT_EQ(stats.num_free_blocks, num_free_blocks_);
}

TEST_F(EngineLife, WhatAStepThrowsIsItsFailure) {
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
  EXPECT_EQ(stats_at_rest().num_free_blocks, num_free_blocks_);
}

TEST_F(EngineLife, ADeviceThatIsGoneEndsEveryRequest) {
  std::atomic<bool> is_gone = false;
  open([&](const Plan&) { return is_gone ? unavailable("the device is gone") : ok_status(); },
       {.max_num_seqs = 2});
  GenerationRequest two_samples = greedy({5, 6}, 200);
  two_samples.sampling.n = 2;
  ASSERT_TRUE(engine_->submit(two_samples, ends_.sink()).ok());
  for (int i = 0; i < 3; ++i)  // wait in the queue
    ASSERT_TRUE(engine_->submit(greedy({7}, 200), ends_.sink()).ok());
  is_gone = true;
  for (int i = 0; i < 10000 && ends_.count() < 5; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(ends_.count(), 5U);
  for (const OutputEvent& event : ends_.events) {
    EXPECT_EQ(event.finish_reason, FinishReason::kError);
    EXPECT_EQ(event.error.code(), StatusCode::kUnavailable);
    EXPECT_THAT(event.error.message(), HasSubstr("the device is gone"));
  }
  EXPECT_FALSE(engine_->stats().healthy);
  EXPECT_EQ(engine_->submit(greedy({7}, 1), ends_.sink()).status().code(),
            StatusCode::kUnavailable);
  engine_->cancel(1);
  engine_->drain(60);  // returns at once: nothing is left
  EXPECT_EQ(engine_->stats().num_running + engine_->stats().num_waiting, 0);
}

TEST_F(EngineLife, ASinkThatThrowsIsTheEngineUndone) {
  open([](const Plan&) { return ok_status(); });
  ASSERT_TRUE(engine_->submit(greedy({5}, 200), ends_.sink()).ok());
  ASSERT_TRUE(engine_
                  ->submit(greedy({6}, 200),
                           [](const OutputEvent& event) {
                             if (event.finish_reason == FinishReason::kNone)
                               throw std::length_error("no room for events");
                           })
                  .ok());
  for (int i = 0; i < 10000 && ends_.count() < 1; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  ASSERT_EQ(ends_.count(), 1U);
  EXPECT_THAT(ends_.events[0].error.message(), HasSubstr("no room for events"));
  EXPECT_FALSE(engine_->stats().healthy);
}

}  // namespace
}  // namespace pagoda
