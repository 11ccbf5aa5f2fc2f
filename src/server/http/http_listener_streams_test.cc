// Streams, clients that disconnect, and the end of a listener.
#include "server/http/http_listener_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace pagoda {
namespace {

TEST_F(HttpListenerTest, AStreamComesInChunksWithCommentsInItsSilences) {
  start({.comment_interval_s = 0.05});
  Connection connection(listener_->port());
  connection.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  const std::string head = connection.read_until("data: begin\n\n");
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream; charset=utf-8\r\n"));
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(connection.read_until(": keep-alive\n\n"), HasSubstr("e\r\n: keep-alive"));
  work_.finish = true;
  work_.wake_all();
  EXPECT_THAT(connection.read_until("0\r\n\r\n"), HasSubstr("data: end\n\n"));
  connection.send("GET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(connection.read_until("GET /next 0"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpListenerTest, AStreamToHttp10EndsWithTheConnection) {
  start();
  work_.finish = true;
  EXPECT_TRUE(exchange("GET /stream HTTP/1.0\r\n\r\n").ends_with("\r\n\r\ndata: begin\n\n"));
}

TEST_F(HttpListenerTest, AClientThatGoesAwayEndsItsWork) {
  start();
  for (const char* path : {"/slow", "/stream"}) {
    Connection connection(listener_->port());
    connection.send(std::string("GET ") + path + " HTTP/1.1\r\nHost: x\r\n\r\n");
    expect_soon([&] { return work_.num_alive == 1; });
    connection.close();
    expect_soon([&] { return work_.num_alive == 0; });
  }
}

TEST_F(HttpListenerTest, AHandlerWithoutMemoryIs503AndTheNextIsAnswered) {
  start();
  const std::string reply = exchange(
      "GET /throw HTTP/1.1\r\nHost: x\r\n\r\nGET /a HTTP/1.1\r\nHost: x\r\nConnection: "
      "close\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 503 "));
  EXPECT_THAT(reply, HasSubstr("the server has no memory left for this request"));
  EXPECT_TRUE(reply.ends_with("GET /a 0"));
}

TEST_F(HttpListenerTest, OneConnectionTooManyIs503) {
  start({.max_connections = 1});
  Connection first(listener_->port());
  first.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  first.read_until("GET /a 0");
  Connection second(listener_->port());
  EXPECT_THAT(second.read_to_close(), StartsWith("HTTP/1.1 503 "));
  first.close();
  expect_soon([&] { return listener_->num_connections() == 0; });
  EXPECT_THAT(exchange("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpListenerTest, StoppingLetsRunningAnswersFinish) {
  start();
  Connection idle(listener_->port());
  idle.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  idle.read_until("GET /a 0");
  Connection busy(listener_->port());
  busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  expect_soon([&] { return work_.num_alive == 1; });
  std::thread stopper([&] { listener_->stop(20); });
  EXPECT_EQ(idle.read_to_close(), "");
  work_.finish = true;
  work_.wake_all();
  EXPECT_TRUE(busy.read_to_close().ends_with("done"));
  stopper.join();
}

TEST_F(HttpListenerTest, WhileRunningAnswersFinishNewConnectionsHaveOneRequest) {
  start();
  Connection busy(listener_->port());
  busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  expect_soon([&] { return work_.num_alive == 1; });
  std::thread drainer([&] { EXPECT_TRUE(listener_->drain(20)); });
  // drain() closes idle connections at once. So one with the answer "Connection: close" came later.
  expect_soon([&] {
    return exchange("GET /a HTTP/1.1\r\nHost: x\r\n\r\n").find("\r\nConnection: close\r\n") !=
           std::string::npos;
  });
  Connection dawdler(listener_->port());  // drain() does not wait for it
  dawdler.send("GET /b");
  work_.finish = true;
  work_.wake_all();
  EXPECT_TRUE(busy.read_to_close().ends_with("done"));
  drainer.join();
  listener_->stop(0);
  EXPECT_EQ(dawdler.read_to_close(), "");
}

TEST_F(HttpListenerTest, WhileRunningAnswersFinishThoseThatHaveJustConnectedHaveOneRequest) {
  start();
  Connection busy(listener_->port());
  busy.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\n");
  expect_soon([&] { return work_.num_alive == 1; });
  Connection served(listener_->port());
  served.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  served.read_until("GET /a 0");
  Connection fresh(listener_->port());
  Connection silent(listener_->port());  // drain() does not wait for it
  expect_soon([&] { return listener_->num_connections() == 4; });
  EXPECT_FALSE(listener_->drain(0));  // `busy` still runs; all others have been told to end
  EXPECT_EQ(served.read_to_close(), "");
  fresh.send("GET /b HTTP/1.1\r\nHost: x\r\n\r\n");
  EXPECT_THAT(fresh.read_to_close(),
              ::testing::AllOf(HasSubstr("GET /b 0"), HasSubstr("\r\nConnection: close\r\n")));
  work_.finish = true;
  work_.wake_all();
  EXPECT_TRUE(busy.read_to_close().ends_with("done"));
  EXPECT_TRUE(listener_->drain(20));
  listener_->stop(0);
  EXPECT_EQ(silent.read_to_close(), "");
}

TEST_F(HttpListenerTest, StoppingEndsWhatIsNotDoneInTime) {
  start();
  Connection busy(listener_->port());
  busy.send("GET /stream HTTP/1.1\r\nHost: x\r\n\r\n");
  busy.read_until("begin");
  listener_->stop(0.05);
  EXPECT_EQ(work_.num_alive, 0);
  EXPECT_THAT(busy.read_to_close(), ::testing::Not(HasSubstr("end")));
}

TEST_F(HttpListenerTest, AnAddressInUseIsOneClearLine) {
  start();
  const auto second = HttpListener::start(
      {.port = listener_->port()}, [](const HttpRequest&, const Wake&) { return HttpReply{}; });
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.status().code(), StatusCode::kUnavailable);
  EXPECT_EQ(second.status().message(),
            "[server] 127.0.0.1:" + std::to_string(listener_->port()) +
                ": expected an address that is free to listen on, got: Address already in use");
  EXPECT_EQ(HttpListener::start({.host = "no such host"}, {}).status().code(),
            StatusCode::kInvalidArgument);
}

}  // namespace
}  // namespace pagoda
