// The memory that a listener counts while clients do not read.
#include "server/http/http_listener_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <list>

namespace pagoda {
namespace {

// More bytes than a connection's buffers hold.
constexpr std::size_t kLargeBytes = 16 << 20;

// A stream that sends one large text and ends.
class LargeStream : public EventStream {
 public:
  std::string poll() override { return std::string(kLargeBytes, 'a'); }
  bool finished() const override { return true; }
  std::string last_words(const ApiError& error) override { return error.message; }
};

class ListenerMemoryTest : public HttpListenerTest {
 protected:
  void start(std::size_t num_answers) {
    memory_ = std::make_shared<RequestMemory>(num_answers * kLargeBytes + kLargeBytes / 2);
    shared_ = HeldText::for_good(std::string(kLargeBytes, 'b'));
    HttpHandler handler = [this](const HttpRequest& request, const Wake&) -> HttpReply {
      if (request.path == "/stream") return {std::make_unique<LargeStream>(), {}};
      if (request.path == "/shared") return {HttpResponse{.shared_body = shared_}, {}};
      const std::size_t num_bytes = request.path == "/large" ? kLargeBytes : 1000;
      return {HttpResponse{.body = std::string(num_bytes, 'a')}, {}};
    };
    listener_ = HttpListener::start({.memory = memory_}, std::move(handler)).value();
  }

  // Sends a request and does not read its answer, until clients_ is cleared.
  void ask_unread(const std::string& path) {
    clients_.emplace_back(listener_->port());
    clients_.back().send("GET " + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_soon([&] { return clients_.back().has_answer(); });
  }
  std::string ask(const std::string& path) {
    return exchange("GET " + path + " HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  }

  // Returns whether one more large answer has room.
  bool has_room() const {
    return HeldBytes(std::make_shared<MemoryAccount>(memory_)).grow(kLargeBytes).ok();
  }

  std::shared_ptr<RequestMemory> memory_;
  SharedText shared_;
  std::list<Connection> clients_;
};

TEST_F(ListenerMemoryTest, AnswersThatAreNotReadLeaveNoRoomForOneMore) {
  start(2);
  for (int i = 0; i < 2; ++i) ask_unread("/large");
  const std::string refusal = ask("/large");
  EXPECT_THAT(refusal, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(refusal, HasSubstr("ask again later"));
  EXPECT_THAT(refusal, HasSubstr("\r\nRetry-After: 1\r\n"));
  EXPECT_THAT(ask("/small"), StartsWith("HTTP/1.1 200 "));
  clients_.clear();
  expect_soon([&] { return ask("/large").starts_with("HTTP/1.1 200 "); });
}

TEST_F(ListenerMemoryTest, TheTextOfAStreamCountsToo) {
  start(2);
  for (int i = 0; i < 2; ++i) ask_unread("/stream");
  expect_soon([&] { return !has_room(); });  // an answer's head comes before its text
  const std::string cut_off = ask("/stream");
  EXPECT_THAT(cut_off, HasSubstr("ask again later"));
  EXPECT_TRUE(cut_off.ends_with("\r\n0\r\n\r\n"));
  EXPECT_LT(cut_off.size(), 1000u);
}

TEST_F(ListenerMemoryTest, ATextThatIsSharedIsNotCountedForEachReader) {
  start(1);
  for (int i = 0; i < 4; ++i) ask_unread("/shared");
  EXPECT_THAT(ask("/large"), StartsWith("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace pagoda
