// HttpListenerTest: a listener on a free port, a client that sends raw bytes, and slow replies.
#pragma once

#include "server/http/http_listener.h"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <mutex>
#include <thread>

#include "server/base/api_error.h"
#include "tests/support/eventually.h"

namespace pagoda {

using ::testing::ContainsRegex;
using ::testing::EndsWith;
using ::testing::HasSubstr;
using ::testing::MatchesRegex;
using ::testing::StartsWith;

// A client that sends exactly the bytes it is given.
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

  // Sends bytes; false if the server has closed.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const ssize_t n = ::send(socket_, bytes.data(), bytes.size(), 0);
      if (n <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(n));
    }
    return true;
  }

  // Reads until `end` has come, or the server closes.
  std::string read_until(std::string_view end) {
    std::string text;
    char byte = 0;
    while (!text.ends_with(end) && ::recv(socket_, &byte, 1, 0) == 1) text += byte;
    return text;
  }
  bool has_answer() const {
    char byte = 0;
    return ::recv(socket_, &byte, 1, MSG_PEEK | MSG_DONTWAIT) == 1;
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

// The state of all slow replies: how many are alive, and whether they may finish.
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
    finished_ = work_.finish;
    if (std::exchange(begun_, true)) return finished_ ? "data: end\n\n" : "";
    return "data: begin\n\n";
  }
  // Returns whether the last poll() returned the end. A later end is seen by the next poll().
  bool finished() const override { return finished_; }
  std::string last_words(const ApiError& error) override {
    return "data: " + error.message + "\n\n";
  }

 private:
  Work& work_;
  bool begun_ = false;
  bool finished_ = false;
};

class HttpListenerTest : public ::testing::Test {
 protected:
  // Makes sending to a closed connection an error. Otherwise it would end the process.
  static void SetUpTestSuite() { std::signal(SIGPIPE, SIG_IGN); }

  void start(HttpLimits limits = {}, std::int64_t memory_bytes = kMaxRequestMemoryBytes,
             ErrorWriter write_error = ListenerOptions().write_error) {
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
    listener_ = HttpListener::start({.limits = limits,
                                     .memory = std::make_shared<RequestMemory>(memory_bytes),
                                     .write_error = std::move(write_error)},
                                    std::move(handler), std::move(gate))
                    .value();
  }

  // Sends `bytes` on a new connection, and returns all that comes back.
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

}  // namespace pagoda
