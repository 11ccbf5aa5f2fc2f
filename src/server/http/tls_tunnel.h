// TlsTunnel: the encryption of one connection. It carries bytes between a client's socket and one
// end of a socket pair, whose other end is served as any plain connection is: so a session knows
// nothing of TLS, and its reads can be cancelled, which those of a TLS stream can't.
//
// Everything in it runs on the connection's strand, but for close().
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
  // Makes a tunnel to a client, and `served` the end that is to be served. REQUIRES: both sockets
  // have one strand. kUnavailable: the system has no socket pair left.
  static Result<std::shared_ptr<TlsTunnel>> open(StreamSocket client, StreamSocket& served,
                                                 std::shared_ptr<boost::asio::ssl::context> context,
                                                 const HttpLimits& limits);

  // Shakes hands with the client, and carries bytes until both sides have ended. A client that
  // speaks HTTP instead of TLS is told so.
  boost::asio::awaitable<void> run();

  // Says that the other end is closed. Bytes that were written there are still carried to the
  // client, which is waited for no longer than that.
  void end_is_closed();
  // Ends now. Thread-safe.
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
  const std::shared_ptr<SocketDeadline> deadline_;  // of what is written to the client
  boost::asio::steady_timer end_closed_;            // expires when the other end is closed
  bool has_said_farewell_ = false;
};

}  // namespace pagoda
