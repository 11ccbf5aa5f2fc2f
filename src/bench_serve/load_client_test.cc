#include "bench_serve/load_client.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <csignal>
#include <limits>
#include <mutex>
#include <thread>

namespace pagoda {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::SizeIs;

const std::string kStreamHead =
    "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream; charset=utf-8\r\n"
    "Transfer-Encoding: chunked\r\n\r\n";

std::string chunk(const std::string& text) {
  return fmt::format("{:x}\r\n{}\r\n", text.size(), text);
}

std::string token_event(const std::string& text) {
  return chunk(R"(data: {"choices":[{"text":")" + text + R"(","finish_reason":null}]})" + "\n\n");
}

const std::string kStreamEnd = chunk("data: [DONE]\n\n") + chunk("").substr(0, 3) + "\r\n";

std::string json_answer(int status, const std::string& body) {
  return fmt::format(
      "HTTP/1.1 {} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{}", status,
      body.size(), body);
}

// A server that sends the same bytes to every request, with a thread for each connection.
class ScriptedServer {
 public:
  explicit ScriptedServer(std::string answer, int max_answers_a_connection = 1 << 20)
      : answer_(std::move(answer)), max_answers_(max_answers_a_connection) {
    std::signal(SIGPIPE, SIG_IGN);
    listener_ = ::socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    EXPECT_EQ(::bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(::listen(listener_, 64), 0);
    EXPECT_EQ(::getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    port_ = ntohs(address.sin_port);
    acceptor_ = std::thread([this] { accept_all(); });
  }
  ~ScriptedServer() {
    ::shutdown(listener_, SHUT_RDWR);
    acceptor_.join();
    ::close(listener_);
    for (const int socket : sockets_) ::shutdown(socket, SHUT_RDWR);
    for (std::thread& thread : threads_) thread.join();
    for (const int socket : sockets_) ::close(socket);
  }

  ServerAccess access() const {
    return {.url = {.host = "127.0.0.1", .port = std::to_string(port_)}, .api_key = "key"};
  }
  int num_connections() const { return num_connections_; }
  std::string last_request() {
    const std::lock_guard lock(mutex_);
    return last_request_;
  }

 private:
  void accept_all() {
    for (int socket = ::accept(listener_, nullptr, nullptr); socket >= 0;
         socket = ::accept(listener_, nullptr, nullptr)) {
      ++num_connections_;
      sockets_.push_back(socket);
      threads_.emplace_back([this, socket] { serve(socket); });
    }
  }

  void serve(int socket) {
    for (int i = 0; i < max_answers_; ++i) {
      if (!read_request(socket)) return;
      ::send(socket, answer_.data(), answer_.size(), 0);
    }
    ::shutdown(socket, SHUT_RDWR);
  }

  bool read_request(int socket) {
    std::string text;
    char byte = 0;
    while (!text.ends_with("\r\n\r\n")) {
      if (::recv(socket, &byte, 1, 0) != 1) return false;
      text += byte;
    }
    const std::size_t at = text.find("Content-Length: ");
    std::size_t left = at == std::string::npos ? 0 : std::stoul(text.substr(at + 16));
    for (; left > 0 && ::recv(socket, &byte, 1, 0) == 1; --left) text += byte;
    const std::lock_guard lock(mutex_);
    last_request_ = text;
    return left == 0;
  }

  const std::string answer_;
  const int max_answers_;
  int listener_ = -1;
  int port_ = 0;
  std::atomic<int> num_connections_ = 0;
  std::mutex mutex_;
  std::string last_request_;
  std::vector<int> sockets_;
  std::vector<std::thread> threads_;
  std::thread acceptor_;
};

const std::string kGoodStream = kStreamHead + token_event("a") + token_event("b") + kStreamEnd;

std::vector<LoadRequest> requests_of(int count) {
  return std::vector<LoadRequest>(count, {.body = "{\"stream\":true}", .num_input_tokens = 4});
}

TEST(LoadClient, EveryRequestIsARecord) {
  const ScriptedServer server(kGoodStream);
  int num_done = 0;
  const LoadRun run = run_load({.server = server.access(),
                                .shape = {.max_concurrency = 3},
                                .on_progress = [&](int done) { num_done = done; }},
                               requests_of(30));
  ASSERT_THAT(run.records, SizeIs(30));
  for (const RequestRecord& record : run.records) {
    EXPECT_EQ(record.error, "");
    EXPECT_EQ(record.num_output_tokens, 2);
    EXPECT_EQ(record.num_input_tokens, 4);
    EXPECT_GE(record.events_s.front(), record.start_s);
    EXPECT_GE(record.end_s, record.events_s.back());
  }
  EXPECT_EQ(num_done, 30);
  EXPECT_LE(serve_figures(run.records, run.duration_s).max_concurrent_requests, 3);
  EXPECT_LE(server.num_connections(), 3);  // connections are reused
}

TEST(LoadClient, ArrivalsFollowTheRateAndTheSeed) {
  const std::vector<double> first = arrivals_s(400, 1, 80);
  EXPECT_EQ(first.front(), 0);
  EXPECT_NEAR(first.back(), 0.2, 0.1);
  EXPECT_TRUE(std::is_sorted(first.begin(), first.end()));
  EXPECT_EQ(arrivals_s(400, 1, 80), first);
  const std::vector<double> other = arrivals_s(400, 2, 80);
  EXPECT_GT(std::abs(first[20] - other[20]) + std::abs(first.back() - other.back()), 0.002);
  EXPECT_NEAR(arrivals_s(4, 1, 80).back(), 100 * first.back(), 1e-9);
  EXPECT_EQ(arrivals_s(std::numeric_limits<double>::infinity(), 1, 3), std::vector<double>(3));
}

// A slow machine may delay requests, but they are never early.
TEST(LoadClient, RequestsAreSentWhenTheyAreToArrive) {
  const ScriptedServer server(kGoodStream);
  const LoadRun run = run_load(
      {.server = server.access(), .shape = {.request_rate = 400}, .seed = 1}, requests_of(80));
  std::vector<double> starts_s;
  for (const RequestRecord& record : run.records) starts_s.push_back(record.start_s);
  std::sort(starts_s.begin(), starts_s.end());
  const std::vector<double> arrivals = arrivals_s(400, 1, 80);
  ASSERT_THAT(starts_s, SizeIs(80));
  for (std::size_t i = 0; i < arrivals.size(); ++i) EXPECT_GE(starts_s[i], arrivals[i]) << i;
  EXPECT_LT(starts_s.back(), 10 * arrivals.back());
}

TEST(LoadClient, AConnectionThatTheServerHasClosedIsReplaced) {
  const ScriptedServer server(kGoodStream, 2);
  const LoadRun run =
      run_load({.server = server.access(), .shape = {.max_concurrency = 1}}, requests_of(6));
  for (const RequestRecord& record : run.records) EXPECT_EQ(record.error, "");
  EXPECT_EQ(server.num_connections(), 3);
}

TEST(LoadClient, FailuresSayWhatCame) {
  struct Case {
    std::string answer;
    const char* error;
  };
  for (const Case& c :
       {Case{json_answer(400, R"({"error":{"message":"too long"}})"), "HTTP 400: too long"},
        Case{json_answer(200, "{}"), "expected an event stream, got application/json"},
        Case{"SSH-2.0-OpenSSH\r\n\r\n", "expected an HTTP answer"},
        Case{kStreamHead + token_event("a") + "0\r\n\r\n", "before the answer did"},
        Case{kStreamHead + chunk("data: {\"error\":{\"message\":\"broke\"}}\n\n") + "0\r\n\r\n",
             "broke"}}) {
    const ScriptedServer server(c.answer);
    const LoadRun run = run_load({.server = server.access()}, requests_of(2));
    ASSERT_THAT(run.records, SizeIs(2));
    for (const RequestRecord& record : run.records)
      EXPECT_THAT(record.error, HasSubstr(c.error)) << c.answer;
  }
}

TEST(LoadClient, AStreamThatIsCutIsAFailure) {
  const ScriptedServer server(kStreamHead + token_event("a"), 1);
  const LoadRun run = run_load({.server = server.access()}, requests_of(1));
  ASSERT_THAT(run.records, SizeIs(1));
  EXPECT_THAT(run.records[0].error, HasSubstr("the connection broke"));
}

TEST(LoadClient, AnInterruptLeavesWhatIsDone) {
  ScriptedServer server(kStreamHead + token_event("a"));  // the stream then stays open without data
  std::thread interrupter([&] {
    while (server.last_request().empty()) std::this_thread::yield();
    ::kill(::getpid(), SIGINT);
  });
  const LoadRun run = run_load({.server = server.access()}, requests_of(3));
  interrupter.join();
  EXPECT_TRUE(run.interrupted);
  EXPECT_THAT(run.records, SizeIs(0));
}

TEST(LoadClient, QuestionsCarryTheKeyAndTheBody) {
  ScriptedServer server(json_answer(200, "[1]"));
  const Result<HttpAnswer> answer = ask_server(server.access(), "/tokenize", "{\"a\":1}");
  ASSERT_TRUE(answer.ok()) << answer.status().message();
  EXPECT_EQ(answer.value().body, "[1]");
  EXPECT_THAT(server.last_request(),
              AllOf(HasSubstr("POST /tokenize HTTP/1.1\r\n"), HasSubstr("Bearer key\r\n"),
                    HasSubstr("\r\n\r\n{\"a\":1}")));
}

TEST(LoadClient, NobodyThereIsOneClearLine) {
  const ServerAccess nobody = {.url = {.host = "127.0.0.1", .port = "1"}};
  const Result<HttpAnswer> answer = ask_server(nobody, "/v1/models");
  EXPECT_EQ(answer.status().code(), StatusCode::kUnavailable);
  EXPECT_THAT(answer.status().message(),
              HasSubstr("http://127.0.0.1:1/v1/models: cannot connect: Connection refused"));
}

}  // namespace
}  // namespace pagoda
