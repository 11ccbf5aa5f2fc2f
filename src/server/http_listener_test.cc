#include "server/http_listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <spdlog/sinks/ostream_sink.h>
#include <spdlog/spdlog.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <sstream>
#include <thread>

#include "tests/support/eventually.h"
namespace pagoda {
namespace {

using ::testing::ContainsRegex;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// A client without manners of its own: it sends the bytes it is given.
class Connection {
 public:
  explicit Connection(std::uint16_t port) : socket_(::socket(AF_INET, SOCK_STREAM, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    const timeval timeout{.tv_sec = 10, .tv_usec = 0};
    ::setsockopt(socket_, SOL_SOCKET, SO_RCVTIMEO, &timeout, sizeof(timeout));
    EXPECT_EQ(::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  ~Connection() { close(); }

  // False if the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), 0);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // Until `end` has come, or the server closes.
  std::string read_until(std::string_view end) {
    std::string text;
    char byte = 0;
    while (!text.ends_with(end) && ::recv(socket_, &byte, 1, 0) == 1) text += byte;
    return text;
  }
  std::string read_to_close() {
    std::string text;
    char bytes[4096];
    for (ssize_t n = ::recv(socket_, bytes, sizeof(bytes), 0); n > 0;
         n = ::recv(socket_, bytes, sizeof(bytes), 0)) {
      text.append(bytes, static_cast<std::size_t>(n));
    }
    return text;
  }

  void close() {
    if (socket_ >= 0) ::close(socket_);
    socket_ = -1;
  }

 private:
  int socket_;
};

// Counts the replies that are alive, as an engine's requests would be.
struct Work {
  std::atomic<int> num_alive = 0;
  std::atomic<bool> finish = false;
  std::mutex mutex;
  std::vector<Wake> wakes;

  void wake_all() {
    std::lock_guard lock(mutex);
    for (const Wake& wake : wakes) wake();
  }
};

class SlowResponse : public PendingReply {
 public:
  explicit SlowResponse(Work& work) : work_(work) { ++work_.num_alive; }
  ~SlowResponse() override { --work_.num_alive; }
  std::optional<HttpReply> poll() override {
    if (!work_.finish) return {};
    return HttpReply{HttpResponse{.content_type = "text/plain", .body = "done"}, {}};
  }

 private:
  Work& work_;
};

class SlowStream : public EventStream {
 public:
  explicit SlowStream(Work& work) : work_(work) { ++work_.num_alive; }
  ~SlowStream() override { --work_.num_alive; }
  std::string poll() override {
    if (std::exchange(begun_, true)) return work_.finish ? "data: end\n\n" : "";
    return "data: begin\n\n";
  }
  bool finished() const override { return begun_ && work_.finish; }

 private:
  Work& work_;
  bool begun_ = false;
};

class HttpListenerTest : public ::testing::Test {
 protected:
  // A send to a connection that the server has closed is an error here, not the end of the process.
  static void SetUpTestSuite() { std::signal(SIGPIPE, SIG_IGN); }

  void start(HttpLimits limits = {}) {
    HttpHandler handler = [this](const HttpRequest& request, Wake wake) -> HttpReply {
      std::lock_guard lock(work_.mutex);
      work_.wakes.push_back(std::move(wake));
      if (request.path == "/slow") return {std::make_unique<SlowResponse>(work_), {}};
      if (request.path == "/stream") return {std::make_unique<SlowStream>(work_), {}};
      if (request.path == "/throw") throw std::bad_alloc();
      return {HttpResponse{.content_type = "text/plain",
                           .body = request.method + " " + request.path + " " +
                                   std::to_string(request.body.size())},
              {}};
    };
    HttpGate gate = [](const HttpRequest& head) -> std::optional<HttpResponse> {
      if (head.path != "/closed") return {};
      return HttpResponse{.status = 403, .content_type = "text/plain", .body = "no"};
    };
    listener_ =
        HttpListener::start({.limits = limits}, std::move(handler), std::move(gate)).value();
  }

  // All that comes back for `bytes` on a connection of their own.
  std::string exchange(std::string_view bytes) {
    Connection connection(listener_->port());
    connection.send(bytes);
    return connection.read_to_close();
  }

  template <typename Condition>
  static void expect_soon(Condition condition) {
    EXPECT_TRUE(eventually(condition));
  }

  Work work_;
  std::unique_ptr<HttpListener> listener_;
};

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
  EXPECT_THAT(exchange("GET http://x:1/a?q HTTP/1.1\r\nConnection: close\r\n\r\n"),
              HasSubstr("GET /a 0"));
  EXPECT_THAT(exchange("GET HTTPS://x HTTP/1.1\r\nConnection: close\r\n\r\n"),
              HasSubstr("GET / 0"));
}

TEST_F(HttpListenerTest, TakesChunkedBodiesAndExpectations) {
  start();
  EXPECT_THAT(exchange("POST /a HTTP/1.1\r\nConnection: close\r\nTransfer-Encoding: chunked\r\n\r\n"
                       "4\r\nabcd\r\n2\r\nef\r\n0\r\n\r\n"),
              HasSubstr("POST /a 6"));
  Connection connection(listener_->port());
  connection.send("POST /a HTTP/1.1\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(connection.read_until("\r\n\r\n"), "HTTP/1.1 100 Continue\r\n\r\n");
  connection.send("ab");
  EXPECT_THAT(connection.read_until("POST /a 2"), StartsWith("HTTP/1.1 200 OK"));
}

TEST_F(HttpListenerTest, AnswersWhatIsNotHttpAndCloses) {
  start({.linger_s = 0.1});
  for (const char* bytes :
       {"nonsense\r\n\r\n", "GET / HTTP/9.9\r\n\r\n", "GET /\x01 HTTP/1.1\r\n\r\n",
        "GET / HTTP/1.1\r\nContent-Length: x\r\n\r\n", "GET / HTTP/1.1\r\nbad header\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        "POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n"}) {
    const std::string reply = exchange(bytes);
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 400 Bad Request\r\nConnection: close\r\n")) << bytes;
    EXPECT_THAT(reply, HasSubstr("{\"error\":{")) << bytes;
  }
}

TEST_F(HttpListenerTest, RefusesWhatIsTooLarge) {
  start({.max_header_bytes = 1024, .max_body_bytes = 100, .linger_s = 0.1});
  EXPECT_THAT(exchange("GET / HTTP/1.1\r\nX: " + std::string(2000, 'x') + "\r\n\r\n"),
              StartsWith("HTTP/1.1 431 "));
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nContent-Length: 101\r\nExpect: 100-continue\r\n\r\n"),
              StartsWith("HTTP/1.1 413 "));
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n80\r\n" +
                       std::string(128, 'x')),
              StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpListenerTest, ARefusalReachesAClientThatStillSends) {
  start({.max_body_bytes = 100});
  Connection connection(listener_->port());
  EXPECT_TRUE(connection.send("POST / HTTP/1.1\r\nContent-Length: 20000000\r\n\r\n" +
                              std::string(20'000'000, 'x')));
  EXPECT_THAT(connection.read_until("}}"), StartsWith("HTTP/1.1 413 "));
}

TEST_F(HttpListenerTest, LargeBodiesShareABudgetAndSmallOnesDoNot) {
  start({.max_body_bytes = 1 << 20,
         .max_total_body_bytes = 150'000,
         .body_silence_s = 1000,
         .linger_s = 0.1});
  const std::string large =
      "POST /a HTTP/1.1\r\nConnection: close\r\nContent-Length: 100000\r\n\r\n";
  Connection first(listener_->port());
  first.send(large + std::string(99'999, 'x'));
  std::string second;
  for (int i = 0; i < 500 && !second.starts_with("HTTP/1.1 503 "); ++i) {
    // Until the first one's body has been read, this one has the budget.
    Connection connection(listener_->port());
    connection.send(large + std::string(100000, 'x'));
    second = connection.read_to_close();
  }
  EXPECT_THAT(second, HasSubstr("too_many_bytes"));
  EXPECT_THAT(exchange("POST /a HTTP/1.1\r\nConnection: close\r\nContent-Length: 3\r\n\r\nabc"),
              HasSubstr("POST /a 3"));
  first.send("x");
  EXPECT_THAT(first.read_to_close(), HasSubstr("POST /a 100000"));
  EXPECT_THAT(exchange(large + std::string(100000, 'x')), HasSubstr("POST /a 100000"));
}

TEST_F(HttpListenerTest, DropsClientsThatDawdle) {
  start({.header_timeout_s = 0.2, .body_timeout_s = 0.2, .idle_timeout_s = 0.2, .linger_s = 0.1});
  EXPECT_EQ(exchange(""), "");
  EXPECT_THAT(exchange("GET / HT"), StartsWith("HTTP/1.1 408 "));
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc"),
              StartsWith("HTTP/1.1 408 "));
  expect_soon([&] { return listener_->num_connections() == 0; });
}

TEST_F(HttpListenerTest, DropsABodyThatDoesNotGoOn) {
  start({.body_silence_s = 0.2, .linger_s = 0.1});
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nContent-Length: 10\r\n\r\nabc"),
              StartsWith("HTTP/1.1 408 "));
}

TEST_F(HttpListenerTest, WhatTheGateRefusesIsAnsweredBeforeItsBody) {
  start({.linger_s = 0.1});
  for (const char* fields : {"Content-Length: 16000000", "Transfer-Encoding: chunked",
                             "Content-Length: 2\r\nExpect: 100-continue"}) {
    const std::string reply =
        exchange("POST /closed HTTP/1.1\r\n" + std::string(fields) + "\r\n\r\n");
    EXPECT_THAT(reply, StartsWith("HTTP/1.1 403 Forbidden\r\nConnection: close\r\n")) << fields;
  }
  Connection connection(listener_->port());
  connection.send("POST /closed HTTP/1.1\r\nContent-Length: 3\r\n\r\n");
  EXPECT_THAT(connection.read_until("\r\n\r\nno"), StartsWith("HTTP/1.1 403 "));
  connection.send("abcPOST /closed HTTP/1.1\r\nContent-Length: 0\r\n\r\nGET /a HTTP/1.1\r\n\r\n");
  EXPECT_THAT(connection.read_until("GET /a 0"), HasSubstr("\r\n\r\nnoHTTP/1.1 200 "));
}

TEST_F(HttpListenerTest, DropsAClientThatDoesNotRead) {
  start({.write_timeout_s = 0.2});
  Connection connection(listener_->port());
  const std::string request = "GET /" + std::string(2000, 'x') + " HTTP/1.1\r\n\r\n";
  const auto start_time = std::chrono::steady_clock::now();
  // It sends requests and reads no answers, until the server gives up.
  while (connection.send(request) &&
         std::chrono::steady_clock::now() < start_time + std::chrono::seconds(20)) {
  }
  expect_soon([&] { return listener_->num_connections() == 0; });
}

TEST_F(HttpListenerTest, ALateAnswerIsSentWhenItIsThere) {
  start();
  Connection connection(listener_->port());
  connection.send("GET /slow HTTP/1.1\r\n\r\nGET /next HTTP/1.1\r\n\r\n");
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
       {"GET /a HTTP/1.1\r\nConnection: close\r\n\r\n", "GET /slow HTTP/1.0\r\n\r\n",
        "GET /stream HTTP/1.0\r\n\r\n", "GET /throw HTTP/1.0\r\n\r\n", "nonsense\r\n\r\n",
        "POST / HTTP/1.1\r\nContent-Length: 101\r\n\r\n"}) {
    EXPECT_THAT(exchange(request), ContainsRegex(kDateAndFreshId)) << request;
    expect_soon([&] { return listener_->num_connections() == 0; });
  }
  Connection first(listener_->port());
  first.send("GET /a HTTP/1.1\r\n\r\n");
  first.read_until("GET /a 0");
  EXPECT_THAT(exchange(""), ContainsRegex(kDateAndFreshId));  // one connection too many
}

TEST_F(HttpListenerTest, AClientsRequestIdComesBackInRefusalsToo) {
  start({.max_body_bytes = 100, .linger_s = 0.1});
  EXPECT_THAT(exchange("GET /a HTTP/1.1\r\nX-Request-Id: mine\r\nConnection: close\r\n\r\n"),
              HasSubstr("\r\nX-Request-Id: mine\r\n"));
  EXPECT_THAT(exchange("POST / HTTP/1.1\r\nX-Request-Id: mine\r\nContent-Length: 101\r\n\r\n"),
              HasSubstr("\r\nX-Request-Id: mine\r\n"));
  EXPECT_THAT(exchange("GET /a HTTP/1.1\r\nX-Request-Id: a b\r\nConnection: close\r\n\r\n"),
              ContainsRegex(kDateAndFreshId));
}

// Takes the process' log for as long as it lives.
class LogCapture {
 public:
  LogCapture() : before_(spdlog::default_logger()) {
    auto sink = std::make_shared<spdlog::sinks::ostream_sink_mt>(text_);
    sink->set_pattern("%l %v");
    spdlog::set_default_logger(std::make_shared<spdlog::logger>("captured", std::move(sink)));
  }
  ~LogCapture() { spdlog::set_default_logger(before_); }
  // Once nobody writes any more.
  std::string text() const { return text_.str(); }

 private:
  std::ostringstream text_;
  std::shared_ptr<spdlog::logger> before_;
};

TEST_F(HttpListenerTest, EveryRequestIsOneLineOfTheLogWithoutWhatWasAsked) {
  LogCapture log;
  start({.linger_s = 0.1});
  exchange(
      "POST /a?key=sk-secret HTTP/1.0\r\nAuthorization: Bearer sk-secret\r\n"
      "X-Request-Id: one\r\nContent-Length: 6\r\n\r\nprompt");
  exchange("nonsense\r\n\r\n");
  {
    Connection connection(listener_->port());
    connection.send("GET /stream HTTP/1.1\r\nX-Request-Id: three\r\n\r\n");
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

TEST_F(HttpListenerTest, AStreamComesInChunksWithCommentsInItsSilences) {
  start({.comment_interval_s = 0.05});
  Connection connection(listener_->port());
  connection.send("GET /stream HTTP/1.1\r\n\r\n");
  const std::string head = connection.read_until("data: begin\n\n");
  EXPECT_THAT(head, HasSubstr("Content-Type: text/event-stream; charset=utf-8\r\n"));
  EXPECT_THAT(head, HasSubstr("Transfer-Encoding: chunked\r\n"));
  EXPECT_THAT(connection.read_until(": keep-alive\n\n"), HasSubstr("e\r\n: keep-alive"));
  work_.finish = true;
  work_.wake_all();
  EXPECT_THAT(connection.read_until("0\r\n\r\n"), HasSubstr("data: end\n\n"));
  connection.send("GET /next HTTP/1.1\r\n\r\n");
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
    connection.send(std::string("GET ") + path + " HTTP/1.1\r\n\r\n");
    expect_soon([&] { return work_.num_alive == 1; });
    connection.close();
    expect_soon([&] { return work_.num_alive == 0; });
  }
}

TEST_F(HttpListenerTest, AHandlerThatThrowsIs500AndTheNextIsAnswered) {
  start();
  const std::string reply =
      exchange("GET /throw HTTP/1.1\r\n\r\nGET /a HTTP/1.1\r\nConnection: close\r\n\r\n");
  EXPECT_THAT(reply, StartsWith("HTTP/1.1 500 "));
  EXPECT_TRUE(reply.ends_with("GET /a 0"));
}

TEST_F(HttpListenerTest, OneConnectionTooManyIs503) {
  start({.max_connections = 1});
  Connection first(listener_->port());
  first.send("GET /a HTTP/1.1\r\n\r\n");
  first.read_until("GET /a 0");
  Connection second(listener_->port());
  EXPECT_THAT(second.read_to_close(), StartsWith("HTTP/1.1 503 "));
  first.close();
  expect_soon([&] { return listener_->num_connections() == 0; });
  EXPECT_THAT(exchange("GET /a HTTP/1.1\r\nConnection: close\r\n\r\n"),
              StartsWith("HTTP/1.1 200 "));
}

TEST_F(HttpListenerTest, StoppingLetsRunningAnswersFinish) {
  start();
  Connection idle(listener_->port());
  idle.send("GET /a HTTP/1.1\r\n\r\n");
  idle.read_until("GET /a 0");
  Connection busy(listener_->port());
  busy.send("GET /slow HTTP/1.1\r\n\r\n");
  expect_soon([&] { return work_.num_alive == 1; });
  std::thread stopper([&] { listener_->stop(20); });
  EXPECT_EQ(idle.read_to_close(), "");
  work_.finish = true;
  work_.wake_all();
  EXPECT_TRUE(busy.read_to_close().ends_with("done"));
  stopper.join();
}

TEST_F(HttpListenerTest, StoppingEndsWhatIsNotDoneInTime) {
  start();
  Connection busy(listener_->port());
  busy.send("GET /stream HTTP/1.1\r\n\r\n");
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
