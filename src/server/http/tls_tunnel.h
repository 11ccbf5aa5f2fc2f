// TlsTunnel: the encryption of one connection. It carries bytes between a client's socket and one
// end of a socket pair. The other end is served like any plain connection. So a session knows
// nothing of TLS, and its reads can be cancelled, unlike those of a TLS stream.
//
// Everything in it runs on the connection's strand, except close().
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/asio/steady_timer.hpp>
#include <memory>

#include "server/http/http_limits.h"
#include "server/http/listening_socket.h"
#include "server/http/socket_deadline.h"
#include "server/http/tls_certificate.h"

namespace pagoda {

class TlsTunnel : public std::enable_shared_from_this<TlsTunnel> {
 public:
  // Makes a tunnel to a client. Sets `served` to the end that a session is to serve. REQUIRES: both
  // sockets have the same strand. kUnavailable: the system has no socket pair left.
  static Result<std::shared_ptr<TlsTunnel>> open(StreamSocket client, StreamSocket& served,
                                                 std::shared_ptr<boost::asio::ssl::context> context,
                                                 const HttpLimits& limits);

  // Does the handshake with the client, and carries bytes until both sides have ended. A client
  // that speaks plain HTTP is told to use https.
  boost::asio::awaitable<void> run();

  // Tells the tunnel that the session has closed its end. Bytes written before that are still
  // carried to the client. After them the tunnel does not wait for the client.
  void end_is_closed();
  // Closes both sides at once. Thread-safe.
  void close();

 private:
  TlsTunnel(StreamSocket client, StreamSocket inner,
            std::shared_ptr<boost::asio::ssl::context> context, const HttpLimits& limits);

  boost::asio::awaitable<bool> shake_hands();
  boost::asio::awaitable<void> carry_in();
  boost::asio::awaitable<void> carry_out();
  boost::asio::awaitable<void> say_farewell();
  void tell_of_https();
  void close_both();

  const HttpLimits& limits_;
  const std::shared_ptr<boost::asio::ssl::context> context_;
  StreamSocket client_;
  StreamSocket inner_;
  boost::asio::ssl::stream<StreamSocket&> tls_;
  const std::shared_ptr<SocketDeadline> deadline_;  // for writing to the client
  boost::asio::steady_timer end_closed_;            // expires when the session has closed its end
  bool has_said_farewell_ = false;
};

}  // namespace pagoda
