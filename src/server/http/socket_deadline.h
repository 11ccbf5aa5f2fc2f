// SocketDeadline: a watchdog of a socket. It cancels the running operation when its deadline
// passes, and notices a peer whose machine or network is gone.
//
// Used only on the socket's strand.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/buffer.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/steady_timer.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <cstddef>
#include <memory>
#include <string_view>

#include "server/http/http_limits.h"
#include "server/http/listening_socket.h"

namespace pagoda {

class SocketDeadline : public std::enable_shared_from_this<SocketDeadline> {
 public:
  using TimePoint = boost::asio::steady_timer::time_point;

  // REQUIRES: `socket` outlives this. The owner of both releases this one first, on the strand.
  explicit SocketDeadline(StreamSocket& socket);

  // Starts the watchdog. If the system refuses a socket option, its own timeout applies: hours.
  void start(const HttpLimits& limits);
  // Stops the watchdog permanently.
  void stop();

  void set(double seconds);
  void set(TimePoint deadline);
  void clear() { deadline_ = TimePoint::max(); }
  // Returns whether the last deadline that was set has passed.
  bool timed_out() const { return timed_out_; }

  static boost::asio::steady_timer::duration to_duration(double seconds);

 private:
  void wait();

  StreamSocket& socket_;
  boost::asio::steady_timer timer_;
  TimePoint deadline_ = TimePoint::max();
  bool timed_out_ = false;
  bool stopped_ = false;
};

// Writes bytes piece by piece. Each piece has `timeout_s` of its own, so that slow clients are
// accepted while they make progress. Returns false if the other side is gone or too slow. `stream`:
// the deadline's socket, or a stream on top of it. The number of bytes is added to `num_written`,
// unless that is null.
template <typename Stream>
boost::asio::awaitable<bool> write_all(Stream& stream, std::string_view bytes,
                                       SocketDeadline& deadline, double timeout_s,
                                       std::size_t* num_written = nullptr) {
  while (!bytes.empty()) {
    deadline.set(timeout_s);
    boost::system::error_code error;
    const std::size_t n = co_await stream.async_write_some(
        boost::asio::buffer(bytes), boost::asio::redirect_error(boost::asio::use_awaitable, error));
    if (num_written != nullptr) *num_written += n;
    if (error || deadline.timed_out()) co_return false;
    bytes.remove_prefix(n);
  }
  deadline.clear();
  co_return true;
}

}  // namespace pagoda
