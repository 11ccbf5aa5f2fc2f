#include "server/http/http_listener_fixture.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "tests/support/log_capture.h"

namespace pagoda {
namespace {

TEST_F(HttpListenerTest, KeepsAConnectionAndTakesPipelinedRequests) {
  start();
  const std::string replies = exchange(
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\nPOST /b?q=1 HTTP/1.1\r\nHost: x\r\nContent-Length: "
      "3\r\n\r\nabc"
      "HEAD /c HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(replies, StartsWith("HTTP/1.1 200 OK\r\nDate: "));
  EXPECT_THAT(replies, HasSubstr("\r\nContent-Type: text/plain\r\nContent-Length: 8\r\n\r\nGET /a 0"
                                 "HTTP/1.1 200"));
  EXPECT_THAT(replies, HasSubstr("\r\n\r\nPOST /b 3HTTP/1.1 200 OK\r\nConnection: close\r\n"));
  EXPECT_TRUE(replies.ends_with("Content-Length: 9\r\n\r\n")) << replies;
}

TEST_F(HttpListenerTest, ClosesAfterHttp10UnlessAskedNotTo) {
  start();
  EXPECT_THAT(exchange("GET /a HTTP/1.0\r\n\r\n"),
              StartsWith("HTTP/1.0 200 OK\r\nConnection: close\r\n"));
  Connection connection(listener_->port());
  connection.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_THAT(connection.read_until("GET /a 0"), HasSubstr("Connection: keep-alive\r\n"));
}

TEST_F(HttpListenerTest, TakesTargetsInAbsoluteForm) {
  start();
  EXPECT_THAT(exchange("GET http://x:1/a?q HTTP/1.1\r\nHost: x:1\r\nConnection: close\r\n\r\n"),
              HasSubstr("GET /a 0"));
  EXPECT_THAT(exchange("GET HTTPS://x HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              HasSubstr("GET / 0"));
}

TEST_F(HttpListenerTest, TakesChunkedBodiesAndExpectations) {
  start();
  EXPECT_THAT(
      exchange(
          "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
          "4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n"),
      HasSubstr("POST /a 6"));
  Connection connection(listener_->port());
  connection.send(
      "POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(connection.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  connection.send("ab");
  EXPECT_THAT(connection.read_until("POST /a 2"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpListenerTest, AnswersWhatIsNotHttpAndCloses) {
  start({.linger_s = 0.1});
  for (const char* bytes :
       {"nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\x01 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: x\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    const std::string reply = exchange(bytes);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n")) << bytes;
    EXPECT_THAT(reply, HasSubstr("{\"error\":{")) << bytes;
  }
}

TEST_F(HttpListenerTest, RefusesWhatIsTooLarge) {
  start({.max_header_bytes = 1024, .max_body_bytes = 100, .linger_s = 0.1});
  EXPECT_THAT(exchange("GET / HTTP/1.1\r\nHost: x\r\nX: " + std::string(2000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(
      exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n"),
      StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n80\r\n" +
                       std::string(128, 'x')),
              StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpListenerTest, AnErrorIsWrittenForItsPath) {
  start({.max_body_bytes = 100, .linger_s = 0.1}, kMaxRequestMemoryBytes,
        [](const FailedRequest& request, const ApiError& error) {
          return fmt::format("{} at {} of {}.", error.code, request.path,
                             request.is_for_anthropic ? request.request_id : "");
        });
  EXPECT_THAT(exchange("POST /a HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n"),
              EndsWith("body_too_large at /a of ."));
  EXPECT_THAT(exchange("GET /throw HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
              EndsWith("service_unavailable at /throw of ."));
  EXPECT_THAT(exchange("GET /throw HTTP/1.1\r\nHost: x\r\nConnection: close\r\n"
                       "anthropic-version: 2023-06-01\r\nX-Request-Id: abc\r\n\r\n"),
              EndsWith("service_unavailable at /throw of abc."));
  EXPECT_THAT(exchange("nonsense\r\n\r\n"), EndsWith(" at  of ."));
}

TEST_F(HttpListenerTest, ARefusalReachesAClientThatStillSends) {
  start({.max_body_bytes = 100});
  Connection connection(listener_->port());
  EXPECT_TRUE(connection.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 20000000\r\n\r\n" +
                              std::string(20'000'000, 'x')));
  EXPECT_THAT(connection.read_until("}}"), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpListenerTest, LargeBodiesShareABudgetAndSmallOnesDoNot) {
  start({.max_body_bytes = 1 << 20, .body_silence_s = 1000, .linger_s = 0.1},
        /*memory_bytes=*/2 * 150'000);
  const std::string large =
      "POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";
  std::optional<Connection> first;
  std::string second;
  expect_soon([&] {
    // Until the body of `first` is read, `second` may have the budget. Then `first` may be refused,
    // and is sent again.
    if (!first || first->has_answer()) {
      first.emplace(listener_->port());
      first->send(large + std::string(99'999, 'x'));
    }
    second = exchange(large + std::string(100000, 'x'));
    return second.starts_with("HTTP/1.1 503 ");
  });
  EXPECT_THAT(second, HasSubstr("too_many_bytes"));
  EXPECT_THAT(
      exchange("POST /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"),
      HasSubstr("POST /a 3"));
  first->send("x");
  EXPECT_THAT(first->read_to_close(), HasSubstr("POST /a 100000"));
  EXPECT_THAT(exchange(large + std::string(100000, 'x')), HasSubstr("POST /a 100000"));
}

TEST_F(HttpListenerTest, DropsClientsThatDawdle) {
  start({.header_timeout_s = 0.2, .body_timeout_s = 0.2, .idle_timeout_s = 0.2, .linger_s = 0.1});
  EXPECT_EQ(exchange(""), "");
  EXPECT_THAT(exchange("GET / HT"), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"),
              StartsWith("HTTP/1.1 408 "));
  expect_soon([&] { return listener_->num_connections() == 0; });
}

TEST_F(HttpListenerTest, DropsABodyThatDoesNotGoOn) {
  start({.body_silence_s = 0.2, .linger_s = 0.1});
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\nabc"),
              StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpListenerTest, WhatTheGateRefusesIsAnsweredBeforeItsBody) {
  start({.linger_s = 0.1});
  for (const char* fields : {"Content-Length: 16000000", "Transfer-Encoding: chunked",
                             "Content-Length: 2\r\nExpect: 100-continue"}) {
    const std::string reply =
        exchange("POST /closed HTTP/1.1\r\nHost: x\r\n" + std::string(fields) + "\r\n\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n")) << fields;
  }
  Connection connection(listener_->port());
  connection.send("POST /closed HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\n");
  EXPECT_THAT(connection.read_until("\r\n\r\nno"), StartsWith("HTTP/1.1 403 "));
  connection.send(
      "abcPOST /closed HTTP/1.1\r\nHost: x\r\nContent-Length: 0\r\n\r\nGET /a HTTP/1.1\r\nHost: "
      "x\r\n\r\n");
  EXPECT_THAT(connection.read_until("GET /a 0"), HasSubstr("\r\n\r\nnoHTTP/1.1 200 "));
}

TEST_F(HttpListenerTest, DropsAClientThatDoesNotRead) {
  start({.write_timeout_s = 0.2});
  Connection connection(listener_->port());
  const std::string request = "GET /" + std::string(2000, 'x') + " HTTP/1.1\r\nHost: x\r\n\r\n";
  const auto start_time = std::chrono::steady_clock::now();
  // The client sends requests and reads no answers, until the server gives up.
  while (connection.send(request) &&
         std::chrono::steady_clock::now() < start_time + std::chrono::seconds(20)) {
  }
  expect_soon([&] { return listener_->num_connections() == 0; });
}

TEST_F(HttpListenerTest, ALateAnswerIsSentWhenItIsThere) {
  start();
  Connection connection(listener_->port());
  connection.send("GET /slow HTTP/1.1\r\nHost: x\r\n\r\nGET /next HTTP/1.1\r\nHost: x\r\n\r\n");
  expect_soon([&] { return work_.num_alive == 1; });
  work_.finish = true;
  work_.wake_all();
  const std::string reply = connection.read_until("GET /next 0");
  EXPECT_THAT(reply, HasSubstr("\r\n\r\ndoneHTTP/1.1 200 OK"));
  EXPECT_EQ(work_.num_alive, 0);
}

constexpr char kDateAndFreshId[] =
    "\r\nDate: [A-Z][a-z][a-z], [0-3][0-9] [A-Z][a-z][a-z] 20[0-9][0-9] [0-9:]+ GMT"
    "\r\nX-Request-Id: req-[0-9a-f]+\r\n";

TEST_F(HttpListenerTest, EveryAnswerHasItsDateAndRequestId) {
  start({.max_body_bytes = 100, .max_connections = 1, .linger_s = 0.1});
  work_.finish = true;
  for (const char* request :
       {"GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n", "GET /slow HTTP/1.0\r\n\r\n",
        "GET /stream HTTP/1.0\r\n\r\n", "GET /throw HTTP/1.0\r\n\r\n", "nonsense\r\n\r\n",
        "POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 101\r\n\r\n"}) {
    EXPECT_THAT(exchange(request), ContainsRegex(kDateAndFreshId)) << request;
    expect_soon([&] { return listener_->num_connections() == 0; });
  }
  Connection first(listener_->port());
  first.send("GET /a HTTP/1.1\r\nHost: x\r\n\r\n");
  first.read_until("GET /a 0");
  EXPECT_THAT(exchange(""), ContainsRegex(kDateAndFreshId));  // one connection too many
}

TEST_F(HttpListenerTest, AClientsRequestIdComesBackInRefusalsToo) {
  start({.max_body_bytes = 100, .linger_s = 0.1});
  EXPECT_THAT(
      exchange("GET /a HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\nConnection: close\r\n\r\n"),
      HasSubstr("\r\nX-Request-Id: mine\r\n"));
  EXPECT_THAT(
      exchange("POST / HTTP/1.1\r\nHost: x\r\nX-Request-Id: mine\r\nContent-Length: 101\r\n\r\n"),
      HasSubstr("\r\nX-Request-Id: mine\r\n"));
  EXPECT_THAT(
      exchange("GET /a HTTP/1.1\r\nHost: x\r\nX-Request-Id: a b\r\nConnection: close\r\n\r\n"),
      ContainsRegex(kDateAndFreshId));
}

TEST_F(HttpListenerTest, EveryRequestIsOneLineOfTheLogWithoutWhatWasAsked) {
  testing::LogCapture log;
  start({.linger_s = 0.1});
  exchange(
      "POST /a?key=sk-secret HTTP/1.0\r\nAuthorization: Bearer sk-secret\r\n"
      "X-Request-Id: one\r\nContent-Length: 6\r\n\r\nprompt");
  exchange("nonsense\r\n\r\n");
  {
    Connection connection(listener_->port());
    connection.send("GET /stream HTTP/1.1\r\nHost: x\r\nX-Request-Id: three\r\n\r\n");
    connection.read_until("begin");
  }
  expect_soon([&] { return listener_->num_connections() == 0; });
  listener_.reset();
  EXPECT_THAT(log.text(),
              MatchesRegex("info \\[access\\] POST /a 200 [0-9.]+ ms [0-9]+ bytes one\n"
                           "info \\[access\\] - - 400 [0-9.]+ ms [0-9]+ bytes req-[0-9a-f]+\n"
                           "info \\[access\\] GET /stream 200 [0-9.]+ ms [0-9]+ bytes three, "
                           "the client went away\n"));
}

}  // namespace
}  // namespace pagoda
