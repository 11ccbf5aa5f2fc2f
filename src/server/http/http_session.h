// HttpSession: one connection, from its accept to its close. Only the listener includes this.
//
// Everything in it runs on the connection's strand. Each operation has a deadline
// (socket_deadline.h), and all that is written counts in the memory budget (HeldText). While an
// answer is being computed or streamed, a read is pending, so that a disconnect is seen at once.
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
    boost::asio::any_io_executor large_bodies;  // see parse_request.h
  };
  // REQUIRES: `socket` is bound to a strand of its own.
  HttpSession(StreamSocket socket, const Shared& shared);

  // Serves requests until either side closes. Never throws.
  boost::asio::awaitable<void> run();

  // Returns whether a byte of its first request has come. Thread-safe.
  bool has_begun() const { return has_begun_; }
  // Ends after the running request, or at once if there is none. But a session without a request so
  // far ends after its first: else its client could not know that nothing was read. Thread-safe.
  void drain();
  // Closes the connection at once. Thread-safe.
  void close();

 private:
  enum class ReadOutcome { kRead, kRefused, kClosed };
  // The most time for a part of a request, and for a pause in it.
  struct ReadTimes {
    double total_s, silence_s;
  };
  struct Incoming {
    explicit Incoming(const Shared& shared)
        : parser(shared.limits, shared.memory),
          held(std::make_shared<MemoryAccount>(shared.memory)) {}

    HttpRequestParser parser;                   // holds the request until the handler takes it
    std::string method, path;                   // empty if the header could not be read
    std::string client_name;                    // HttpRequest::client_name
    std::shared_ptr<const RequestTrace> trace;  // HttpRequest::trace
    std::shared_ptr<MemoryAccount> held;        // HttpRequest::held
    std::string request_id;
    bool is_for_anthropic = false;                     // HttpRequest::is_for_anthropic()
    Clock::TimePoint arrival = Clock::system().now();  // when the first byte came
    bool keep_alive = true;
    HttpResponse refusal;      // the response after kRefused
    int status = 0;            // the answer's; 0: it has not begun
    bool is_answered = false;  // the whole answer has been written
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
