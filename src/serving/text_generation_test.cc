#include "serving/text_generation.h"

#include <gtest/gtest.h>

#include <chrono>
#include <thread>

#include "tests/support/eventually.h"
#include "tests/support/fake_model.h"

namespace pagoda {
namespace {

struct Answer {
  std::string text;
  std::vector<int> token_ids;
  std::vector<TokenLogprobs> logprobs;
  TextPiece last;
};

class TextGenerationTest : public ::testing::Test {
 protected:
  TextRequest request(const std::string& prompt) {
    TextRequest request;
    request.generation.prompt_token_ids = model_->tokenizer->encode(prompt).value();
    request.generation.sampling.max_tokens = 1000;
    return request;
  }

  std::vector<Answer> run(TextRequest request) {
    const int num_samples = request.generation.sampling.n;
    auto generation = TextGeneration::start(*model_, std::move(request), nullptr).value();
    std::vector<Answer> answers(num_samples);
    while (!generation->finished()) {
      for (TextPiece& piece : generation->wait()) {
        Answer& answer = answers.at(piece.sample_index);
        EXPECT_EQ(answer.last.finish_reason, FinishReason::kNone) << "a piece after the last";
        answer.text += piece.text;
        answer.token_ids.insert(answer.token_ids.end(), piece.token_ids.begin(),
                                piece.token_ids.end());
        answer.logprobs.insert(answer.logprobs.end(), piece.logprobs.begin(), piece.logprobs.end());
        answer.last = std::move(piece);
      }
    }
    EXPECT_TRUE(generation->take().empty());
    return answers;
  }

  FakeEngine& engine() { return fake_engine(*model_); }

  // Checks the number of cancelled samples. It waits, because the engine acts on a cancellation
  // only in its next step.
  void expect_cancelled(int count) {
    eventually([&] { return engine().num_cancelled_samples() >= count; });
    EXPECT_EQ(engine().num_cancelled_samples(), count);
  }

  std::unique_ptr<ServedModel> model_ = make_fake_model();
};

TEST_F(TextGenerationTest, PiecesJoinToTheAnswerInWholeCharacters) {
  auto generation = TextGeneration::start(*model_, request("say 再见 👋!"), nullptr).value();
  std::string text;
  while (!generation->finished()) {
    for (const TextPiece& piece : generation->wait()) {
      EXPECT_EQ(piece.text.find("\xef\xbf\xbd"), std::string::npos);
      const char first = piece.text.empty() ? 'a' : piece.text.front();
      EXPECT_NE(static_cast<unsigned char>(first) & 0xc0, 0x80);
      text += piece.text;
    }
  }
  EXPECT_EQ(text, "再见 👋!");
}

TEST_F(TextGenerationTest, EndOfSequenceIsAmongTheIdsAndNotInTheText) {
  TextRequest asked = request("say hi");
  asked.skip_special_tokens = false;
  const Answer answer = run(std::move(asked)).front();
  EXPECT_EQ(answer.text, "hi");
  EXPECT_EQ(answer.last.finish_reason, FinishReason::kStop);
  EXPECT_EQ(answer.last.stop_token_id, model_->tokenizer->eos_token_id());
  EXPECT_EQ(answer.token_ids.size(), 3u);
}

TEST_F(TextGenerationTest, StopStringEndsTheSampleAndCancelsIt) {
  model_ = make_fake_model({.token_s = 0.001});
  TextRequest asked = request("count 5000");
  asked.generation.sampling.logprobs = 1;
  asked.stop = {"zzz", " 12", "2 1"};
  const Answer answer = run(std::move(asked)).front();
  EXPECT_EQ(answer.text, "1 2 3 4 5 6 7 8 9 10 11");
  EXPECT_EQ(answer.last.finish_reason, FinishReason::kStop);
  EXPECT_EQ(answer.last.stop_string, " 12");
  EXPECT_FALSE(answer.last.stop_token_id);
  // The ids include those of the stop string, each with its log-probability.
  EXPECT_EQ(model_->tokenizer->decode(answer.token_ids, false).value(),
            "1 2 3 4 5 6 7 8 9 10 11 12");
  EXPECT_EQ(answer.logprobs.size(), answer.token_ids.size());
  expect_cancelled(1);
}

TEST_F(TextGenerationTest, StopStringMayStayInTheText) {
  TextRequest asked = request("count 30");
  asked.stop = {"7"};
  asked.include_stop_str_in_output = true;
  const Answer answer = run(std::move(asked)).front();
  EXPECT_EQ(answer.text, "1 2 3 4 5 6 7");
  EXPECT_EQ(answer.last.stop_string, "7");
}

TEST_F(TextGenerationTest, NothingStopsBeforeMinTokens) {
  TextRequest asked = request("say aXbXcXd");
  asked.stop = {"X"};
  asked.generation.sampling.min_tokens = 4;
  EXPECT_EQ(run(std::move(asked)).front().text, "aXbXc");
}

TEST_F(TextGenerationTest, TextHeldBackForAStopStringComesAtTheEnd) {
  TextRequest asked = request("say abcab");
  asked.stop = {"abd"};
  const Answer answer = run(std::move(asked)).front();
  EXPECT_EQ(answer.text, "abcab");
  EXPECT_FALSE(answer.last.stop_string);
}

TEST_F(TextGenerationTest, AStopStringDoesNotDependOnHowTheTextIsCut) {
  for (const std::string stop : {"he", "t", " the", "e c", "the cat"}) {
    TextRequest asked = request("say see the cat");
    asked.stop = {stop};
    const std::string text = "see the cat";
    EXPECT_EQ(run(std::move(asked)).front().text, text.substr(0, text.find(stop))) << stop;
  }
}

TEST_F(TextGenerationTest, SamplesEndEachOnItsOwn) {
  TextRequest asked = request("say hello");
  asked.generation.sampling.n = 3;
  const std::vector<Answer> answers = run(std::move(asked));
  for (const Answer& answer : answers) EXPECT_EQ(answer.text, "hello");
}

TEST_F(TextGenerationTest, ErrorsOfTheEngineAndOfItsSamplesArrive) {
  const Answer answer = run(request("fail no luck")).front();
  EXPECT_EQ(answer.text, "So far");
  EXPECT_EQ(answer.last.finish_reason, FinishReason::kError);
  EXPECT_EQ(answer.last.error.message(), "no luck");

  TextRequest out_of_range = request("x");
  out_of_range.generation.sampling.n = 0;
  EXPECT_EQ(TextGeneration::start(*model_, out_of_range, nullptr).status().code(),
            StatusCode::kInvalidArgument);
  TextRequest empty_stop = request("x");
  empty_stop.stop = {""};
  EXPECT_EQ(TextGeneration::start(*model_, empty_stop, nullptr).status().code(),
            StatusCode::kInvalidArgument);
  engine().set_healthy(false);
  EXPECT_EQ(TextGeneration::start(*model_, request("x"), nullptr).status().code(),
            StatusCode::kUnavailable);
}

TEST_F(TextGenerationTest, ItsEndCancelsAndNeverCallsBackAgain) {
  model_ = make_fake_model({.token_s = 0.001});
  std::atomic<int> calls = 0;
  auto generation =
      TextGeneration::start(*model_, request("count 5000"), [&calls] { ++calls; }).value();
  while (calls == 0) std::this_thread::yield();
  generation.reset();
  const int calls_before = calls;
  expect_cancelled(1);
  EXPECT_EQ(calls, calls_before);
}

TEST_F(TextGenerationTest, CancelEndsWithItsReason) {
  model_ = make_fake_model({.token_s = 0.001});
  auto generation = TextGeneration::start(*model_, request("count 5000"), nullptr).value();
  generation->cancel();
  FinishReason reason = FinishReason::kNone;
  while (!generation->finished()) {
    for (const TextPiece& piece : generation->wait()) reason = piece.finish_reason;
  }
  EXPECT_EQ(reason, FinishReason::kCancelled);
}

TEST_F(TextGenerationTest, WhatIsTakenCountsNoMoreUnlessTheAnswerIsKept) {
  constexpr std::int64_t kLimit = 1 << 20;
  for (const bool is_held_to_the_end : {false, true}) {
    const auto budget = std::make_shared<RequestMemory>(kLimit);
    TextRequest asked = request("count 100");
    asked.generation.sampling.logprobs = 5;
    asked.held = std::make_shared<MemoryAccount>(budget);
    asked.is_held_to_the_end = is_held_to_the_end;
    auto generation = TextGeneration::start(*model_, std::move(asked), nullptr).value();
    while (!generation->finished()) generation->wait();
    HeldBytes other(std::make_shared<MemoryAccount>(budget));
    EXPECT_EQ(other.grow(kLimit).ok(), !is_held_to_the_end);
    generation.reset();
    // The engine's sink may keep the queue a moment longer.
    if (is_held_to_the_end) eventually([&] { return other.grow(kLimit).ok(); });
  }
}

TEST_F(TextGenerationTest, AnAnswerThatGetsTooLargeEndsWithAnError) {
  TextRequest asked = request("count 900");
  asked.generation.sampling.logprobs = 5;
  asked.held = std::make_shared<MemoryAccount>(std::make_shared<RequestMemory>(1 << 20));
  asked.is_held_to_the_end = true;
  const Answer answer = run(std::move(asked)).front();
  EXPECT_EQ(answer.last.finish_reason, FinishReason::kError);
  EXPECT_EQ(answer.last.error.code(), StatusCode::kInvalidArgument);
  EXPECT_LT(answer.token_ids.size(), 300U);
}

TEST_F(TextGenerationTest, EachCopyOfAnAnswerCounts) {
  for (const int num_copies : {1, 5}) {
    TextRequest asked = request("count 100");
    asked.generation.sampling.logprobs = 5;
    asked.held = std::make_shared<MemoryAccount>(std::make_shared<RequestMemory>(3 << 20));
    asked.is_held_to_the_end = true;
    asked.num_copies = num_copies;
    const bool is_too_large =
        run(std::move(asked)).front().last.finish_reason == FinishReason::kError;
    EXPECT_EQ(is_too_large, num_copies == 5);
  }
}

}  // namespace
}  // namespace pagoda
