// HttpSession: one connection, from its accept to its close. Only the listener includes this.
//
// Everything in it runs on the connection's strand. Each operation has a deadline
// (socket_deadline.h), and all that is written is counted (HeldText); while an answer is being computed or streamed, a read stands so
// that the client's going away is seen at once.
#pragma once

#include <atomic>
#include <boost/asio/awaitable.hpp>
#include <boost/asio/cancellation_signal.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <memory>
#include <optional>
#include <string>

#include "server/base/error_response.h"
#include "server/base/http_message.h"
#include "server/http/access_log.h"
#include "server/http/http_limits.h"
#include "server/http/http_request_parser.h"
#include "server/http/listening_socket.h"
#include "server/http/socket_deadline.h"

namespace pagoda {

class HttpSession : public std::enable_shared_from_this<HttpSession> {
 public:
  // The state that all connections share; it outlives them.
  struct Shared {
    const HttpLimits& limits;
    const HttpGate& gate;
    const HttpHandler& handler;
    std::shared_ptr<RequestMemory> memory;
    AccessLog& access_log;
    const ErrorWriter& write_error;
    boost::asio::any_io_executor large_bodies;  // parse_request.h
  };
  // REQUIRES: `socket` is bound to a strand of its own.
  HttpSession(StreamSocket socket, const Shared& shared);

  // Serves requests until either side closes. Never throws.
  boost::asio::awaitable<void> run();

  // Returns whether a byte of its first request has come. Thread-safe.
  bool has_begun() const { return has_begun_; }
  // Ends after the request under way, or now if there is none. A session that has not begun ends
  // after its first request: else its client could not know that the server read nothing of it.
  // Thread-safe.
  void drain();
  // Ends now. Thread-safe.
  void close();

 private:
  enum class ReadOutcome { kRead, kRefused, kClosed };
  // How long a part of a request may take in all, and how long nothing of it may come.
  struct ReadTimes {
    double total_s, silence_s;
  };
  struct Incoming {
    explicit Incoming(const Shared& shared)
        : parser(shared.limits, shared.memory),
          held(std::make_shared<MemoryAccount>(shared.memory)) {}

    HttpRequestParser parser;                   // has the request, until the handler takes it
    std::string method, path;                   // empty where the header could not be read
    std::string client_name;                    // of HttpRequest
    std::shared_ptr<const RequestTrace> trace;  // of HttpRequest
    std::shared_ptr<MemoryAccount> held;        // of HttpRequest
    std::string request_id;
    Clock::TimePoint arrival = Clock::system().now();  // of the first byte
    bool keep_alive = true;
    HttpResponse refusal;      // of kRefused
    int status = 0;            // of the answer; 0: it has not begun
    bool is_answered = false;  // wholly
  };
  struct WakeState;

  boost::asio::awaitable<bool> wait_for_first_byte();
  boost::asio::awaitable<bool> serve_request();
  boost::asio::awaitable<ReadOutcome> read(Incoming& incoming, ReadTimes times);
  boost::asio::awaitable<ReadOutcome> read_head(Incoming& incoming);
  boost::asio::awaitable<ReadOutcome> read_body(Incoming& incoming);
  boost::asio::awaitable<bool> refuse(Incoming& incoming, HttpResponse response, bool close);
  boost::asio::awaitable<bool> answer(Incoming& incoming);
  boost::asio::awaitable<bool> await_reply(HttpReply& reply);
  boost::asio::awaitable<bool> send_response(Incoming& incoming, HttpResponse response,
                                             const HttpHeaders& headers, bool close);
  boost::asio::awaitable<bool> send_stream(Incoming& incoming, EventStream& stream,
                                           const HttpHeaders& headers);
  boost::asio::awaitable<bool> write(std::string bytes, const Incoming& incoming);
  boost::asio::awaitable<bool> write(SharedText text);
  boost::asio::awaitable<void> wait_for_wake(double timeout_s);
  boost::asio::awaitable<void> linger();

  std::optional<HttpResponse> refusal_of_gate(Incoming& incoming) const;
  HttpReply handle(Incoming& incoming) const;
  void log(const Incoming& incoming) const;
  bool closes_after(const Incoming& incoming) const { return !incoming.keep_alive || draining_; }

  void start_watching_peer();
  boost::asio::awaitable<void> stop_watching_peer();

  StreamSocket socket_;
  const Shared shared_;
  const HttpLimits& limits_;
  boost::beast::flat_buffer buffer_;  // received, not yet parsed
  std::shared_ptr<WakeState> wake_;

  std::shared_ptr<SocketDeadline> deadline_;

  boost::asio::cancellation_signal stop_watching_;
  bool watching_ = false;
  bool peer_gone_ = false;

  std::atomic<bool> has_begun_ = false;
  bool idle_ = true;  // between two requests
  std::size_t num_written_ = 0;
  std::atomic<bool> draining_ = false;
  bool closed_ = false;
};

}  // namespace pagoda
