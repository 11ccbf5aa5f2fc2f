#include "server/http/socket_deadline.h"

#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include <algorithm>
#include <chrono>

namespace pagoda {
namespace {

namespace asio = boost::asio;
using boost::system::error_code;

constexpr int kNumProbes = 3;  // unanswered probes before the peer counts as gone

// Makes the system notice a peer that sends nothing, not even an end, because its machine or
// network is gone. Probes find this while there is nothing to send, and unacknowledged bytes while
// there is.
void notice_lost_peer(StreamSocket& socket, const HttpLimits& limits) {
  error_code ignored;
  socket.set_option(asio::socket_base::keep_alive(true), ignored);
  const auto set = [&](int option, double value) {
    const int rounded = std::max(1, static_cast<int>(value));
    (void)setsockopt(socket.native_handle(), IPPROTO_TCP, option, &rounded, sizeof(rounded));
  };
#ifdef TCP_KEEPIDLE
  set(TCP_KEEPIDLE, limits.probe_after_s);
#else
  set(TCP_KEEPALIVE, limits.probe_after_s);
#endif
  set(TCP_KEEPINTVL, limits.probe_after_s / kNumProbes);
  set(TCP_KEEPCNT, kNumProbes);
#ifdef TCP_USER_TIMEOUT
  set(TCP_USER_TIMEOUT, 1000 * limits.write_timeout_s);
#endif
}

}  // namespace

asio::steady_timer::duration SocketDeadline::to_duration(double seconds) {
  return std::chrono::duration_cast<asio::steady_timer::duration>(
      std::chrono::duration<double>(seconds));
}

SocketDeadline::SocketDeadline(StreamSocket& socket)
    : socket_(socket), timer_(socket.get_executor()) {}

void SocketDeadline::start(const HttpLimits& limits) {
  notice_lost_peer(socket_, limits);
  wait();
}

void SocketDeadline::stop() {
  stopped_ = true;
  timer_.cancel();
}

void SocketDeadline::set(double seconds) {
  set(std::chrono::steady_clock::now() + to_duration(seconds));
}

void SocketDeadline::set(TimePoint deadline) {
  timed_out_ = false;
  deadline_ = deadline;
  // A later deadline needs no new wait: the watchdog sees it when it wakes at the old one.
  if (deadline_ < timer_.expiry()) wait();
}

void SocketDeadline::wait() {
  if (stopped_) return;
  timer_.expires_at(deadline_);
  timer_.async_wait([weak = weak_from_this()](error_code error) {
    const auto self = weak.lock();
    if (!self || self->stopped_ || error) return;
    if (std::chrono::steady_clock::now() >= self->deadline_) {
      self->timed_out_ = true;
      self->deadline_ = TimePoint::max();
      error_code ignored;
      self->socket_.cancel(ignored);
    }
    self->wait();
  });
}

}  // namespace pagoda
