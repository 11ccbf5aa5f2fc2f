#include "server/generation/text_workers.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cerrno>
#include <chrono>
#include <future>
#include <new>
#include <stdexcept>
#include <string>
#include <system_error>

#include "core/start_thread.h"

namespace pagoda {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

HttpReply text(std::string body) {
  return {HttpResponse{.body = std::move(body)}, {}};
}

PendingReply* pending(HttpReply& reply) {
  auto* held = std::get_if<std::unique_ptr<PendingReply>>(&reply.content);
  return held == nullptr ? nullptr : held->get();
}

class TextWorkersTest : public ::testing::Test {
 protected:
  using Place = TextWorkers::Place;

  // Keeps the lane's only thread until the gate is opened.
  HttpReply block(TextLane lane) {
    std::promise<void> begun;
    HttpReply reply = workers_.run(
        {.lane = lane}, [] {},
        [this, &begun] {
          begun.set_value();
          opened_.wait();
          return text("blocker");
        });
    begun.get_future().wait();
    return reply;
  }
  HttpReply note(Place place, const std::string& name) {
    return workers_.run(
        place, [] {},
        [this, name] {
          done_.push_back(name);
          if (done_.size() == num_expected_) all_done_.set_value();
          return text(name);
        });
  }

  std::promise<void> gate_;
  std::shared_future<void> opened_ = gate_.get_future().share();
  std::vector<std::string> done_;  // written by the lane's only thread
  std::size_t num_expected_ = 0;
  std::promise<void> all_done_;
  TextWorkers workers_{{.num_short_threads = 1, .max_waiting = 3}};
};

TEST_F(TextWorkersTest, AReplyIsWhatTheWorkReturnsAndMayBeToldToWaitAgain) {
  std::promise<void> woken;
  HttpReply reply = workers_.run(
      {}, [&woken] { woken.set_value(); },
      [this] {
        return workers_.run(
            {.lane = TextLane::kGrammar}, [] {}, [] { return text("late"); });
      });
  ASSERT_NE(pending(reply), nullptr);
  woken.get_future().wait();
  std::optional<HttpReply> next = pending(reply)->poll();
  ASSERT_TRUE(next);
  ASSERT_NE(pending(*next), nullptr);
  std::optional<HttpReply> last;
  while (!last) last = pending(*next)->poll();
  EXPECT_EQ(std::get<HttpResponse>(last->content).body, "late");
}

TEST_F(TextWorkersTest, ShortTextsWaitNeitherForLongerOnesNorForGrammars) {
  std::vector<HttpReply> others;
  for (const TextLane lane : {TextLane::kMedium, TextLane::kLong, TextLane::kGrammar}) {
    others.push_back(block(lane));
    others.push_back(note({.lane = lane}, "waits"));
  }
  num_expected_ = 1;
  const HttpReply a_short_one = note({}, "short");
  all_done_.get_future().wait();
  EXPECT_THAT(done_, ElementsAre("short"));
  others.clear();
  gate_.set_value();
}

TEST(TextLanes, GoBySize) {
  EXPECT_EQ(lane_of_text(32 << 10), TextLane::kShort);
  EXPECT_EQ(lane_of_text((32 << 10) + 1), TextLane::kMedium);
  EXPECT_EQ(lane_of_text(512 << 10), TextLane::kMedium);
  EXPECT_EQ(lane_of_text((512 << 10) + 1), TextLane::kLong);
}

TEST_F(TextWorkersTest, ALargeTextLetsSmallerOnesPass) {
  const HttpReply first = block(TextLane::kLong);
  num_expected_ = 3;
  const HttpReply large = note({.lane = TextLane::kLong, .num_bytes = 4 << 20}, "4 MB");
  const HttpReply middle = note({.lane = TextLane::kLong, .num_bytes = 1 << 20}, "1 MB");
  const HttpReply small = note({.lane = TextLane::kLong, .num_bytes = 600'000}, "600 KB");
  gate_.set_value();
  all_done_.get_future().wait();
  EXPECT_THAT(done_, ElementsAre("600 KB", "1 MB", "4 MB"));
}

TEST_F(TextWorkersTest, WhatNobodyWaitsForIsNotDone) {
  const HttpReply first = block(TextLane::kShort);
  {
    const HttpReply dropped = note({}, "dropped");
    EXPECT_EQ(workers_.num_waiting(), 1);
  }
  EXPECT_EQ(workers_.num_waiting(), 0);
  num_expected_ = 1;
  const HttpReply kept = note({}, "kept");
  gate_.set_value();
  all_done_.get_future().wait();
  EXPECT_THAT(done_, ElementsAre("kept"));
}

// The result must be destroyed because a generation is cancelled by its destructor.
TEST_F(TextWorkersTest, TheResultOfWorkThatIsDroppedWhileItRunsIsDestroyed) {
  struct Stream : EventStream {
    explicit Stream(std::promise<void>& ended) : ended(ended) {}
    ~Stream() override { ended.set_value(); }
    std::string poll() override { return ""; }
    std::string last_words(const ApiError&) override { return ""; }
    bool finished() const override { return false; }
    std::promise<void>& ended;
  };
  std::promise<void> begun, ended;
  bool is_woken = false;
  {
    const HttpReply reply = workers_.run(
        {}, [&] { is_woken = true; },
        [&]() -> HttpReply {
          begun.set_value();
          opened_.wait();
          return {std::make_unique<Stream>(ended), {}};
        });
    begun.get_future().wait();
  }
  gate_.set_value();
  ended.get_future().wait();
  EXPECT_FALSE(is_woken);
}

TEST_F(TextWorkersTest, AFullLaneRefusesAndTheOthersGoOn) {
  const HttpReply first = block(TextLane::kLong);
  std::vector<HttpReply> waiting;
  for (int i = 0; i < 3; ++i) waiting.push_back(note({.lane = TextLane::kLong}, "waits"));
  const HttpReply refused = note({.lane = TextLane::kLong}, "refused");
  const auto* response = std::get_if<HttpResponse>(&refused.content);
  ASSERT_NE(response, nullptr);
  EXPECT_EQ(response->status, 429);
  EXPECT_THAT(response->error->message, HasSubstr("3 texts wait"));
  HttpReply other = workers_.run(
      {}, [] {}, [] { return text("goes on"); });
  EXPECT_NE(pending(other), nullptr);
  gate_.set_value();
}

TEST_F(TextWorkersTest, WorkThatThrowsIsA500AndALackA503AndTheNextIsDone) {
  const auto status_of = [this](HttpReply (*work)()) {
    HttpReply thrown = workers_.run(
        {}, [] {}, [work] { return work(); });
    std::optional<HttpReply> reply;
    while (!reply) reply = pending(thrown)->poll();
    return std::get<HttpResponse>(reply->content).status;
  };
  EXPECT_EQ(status_of([]() -> HttpReply { throw std::runtime_error("a mistake"); }), 500);
  EXPECT_EQ(status_of([]() -> HttpReply { throw std::bad_alloc(); }), 503);
  EXPECT_EQ(status_of([]() -> HttpReply {
              throw NoThread(std::system_error(EAGAIN, std::generic_category()));
            }),
            503);
  num_expected_ = 1;
  const HttpReply next = note({}, "next");
  all_done_.get_future().wait();
}

}  // namespace
}  // namespace pagoda
