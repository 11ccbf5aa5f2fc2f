// SocketDeadline: a watchdog over a socket. It cancels the operation under way when its deadline
// passes, and notices a peer whose machine or network is gone.
//
// Belongs to the socket's strand.
#pragma once

#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "server/http_limits.h"
#include "server/listening_socket.h"

namespace pagoda {

class SocketDeadline : public std::enable_shared_from_this<SocketDeadline> {
 public:
  using TimePoint = boost::asio::steady_timer::time_point;

  // REQUIRES: `socket` outlives this: whoever owns both gives this one up first, on the strand.
  explicit SocketDeadline(StreamSocket& socket);

  // Starts the watchdog. Where the system refuses an option, its own times hold: hours.
  void start(const HttpLimits& limits);
  // Ends it, whatever is set later.
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

}  // namespace pagoda
