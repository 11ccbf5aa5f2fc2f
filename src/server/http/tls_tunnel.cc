#include "server/http/tls_tunnel.h"

#include <openssl/err.h>
#include <openssl/ssl.h>
#include <openssl/sslerr.h>

#include <boost/asio/dispatch.hpp>
#include <boost/asio/experimental/awaitable_operators.hpp>
#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/local/connect_pair.hpp>
#include <boost/asio/local/stream_protocol.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <string>

#include "core/log.h"
#include "server/base/error_response.h"
#include "server/http/http_head.h"

namespace pagoda {
namespace {

namespace asio = boost::asio;
namespace ssl = boost::asio::ssl;
using boost::system::error_code;

constexpr std::size_t kInBytes = 4 << 10;  // bytes to the session at a time
// Bytes to the client at a time: the most of a TLS record.
constexpr std::size_t kOutBytes = 16 << 10;

bool is_plain_http(const error_code& error) {
  return error.category() == asio::error::get_ssl_category() &&
         ERR_GET_REASON(static_cast<unsigned long>(error.value())) == SSL_R_HTTP_REQUEST;
}

}  // namespace

Result<std::shared_ptr<TlsTunnel>> TlsTunnel::open(StreamSocket client, StreamSocket& served,
                                                   std::shared_ptr<ssl::context> context,
                                                   const HttpLimits& limits) {
  asio::local::stream_protocol::socket inner(client.get_executor());
  asio::local::stream_protocol::socket outer(served.get_executor());
  error_code error;
  asio::local::connect_pair(inner, outer, error);
  if (error) return unavailable("[tls] expected a socket pair, got: {}", error.message());
  served = StreamSocket(std::move(outer));
  return std::shared_ptr<TlsTunnel>(
      new TlsTunnel(std::move(client), StreamSocket(std::move(inner)), std::move(context), limits));
}

TlsTunnel::TlsTunnel(StreamSocket client, StreamSocket inner, std::shared_ptr<ssl::context> context,
                     const HttpLimits& limits)
    : limits_(limits),
      context_(std::move(context)),
      client_(std::move(client)),
      inner_(std::move(inner)),
      tls_(client_, *context_),
      deadline_(std::make_shared<SocketDeadline>(client_)),
      end_closed_(client_.get_executor(), asio::steady_timer::time_point::max()) {}

asio::awaitable<void> TlsTunnel::run() {
  using namespace asio::experimental::awaitable_operators;  // NOLINT(google-build-using-namespace)
  error_code ignored;
  client_.set_option(asio::ip::tcp::no_delay(true), ignored);
  deadline_->start(limits_);
  if (co_await shake_hands()) co_await (carry_in() && carry_out());
  deadline_->stop();
  close_both();
}

asio::awaitable<bool> TlsTunnel::shake_hands() {
  deadline_->set(limits_.header_timeout_s);
  error_code error;
  co_await tls_.async_handshake(ssl::stream_base::server,
                                asio::redirect_error(asio::use_awaitable, error));
  deadline_->clear();
  if (!error) co_return true;
  log_debug("[tls] handshake: {}", error.message());
  if (is_plain_http(error)) tell_of_https();
  co_return false;
}

// Tells the client to use https. It does not wait for the client: the answer fits any send buffer.
void TlsTunnel::tell_of_https() {
  HttpResponse response = error_response(
      {400, "this port expects TLS: ask it by https instead of http", "", "https_expected"});
  response.body = error_body(*response.error);
  const std::string id = request_id_for("");
  const std::string bytes =
      whole_head({.status = 400, .close = true, .request_id = id}, response) + response.body;
  error_code ignored;
  client_.non_blocking(true, ignored);
  client_.write_some(asio::buffer(bytes), ignored);
}

// Carries the client's bytes to the session. It has no deadline of its own: the session limits the
// time, and closes its end.
asio::awaitable<void> TlsTunnel::carry_in() {
  std::string piece(kInBytes, '\0');
  error_code error;
  while (!error) {
    const std::size_t n = co_await tls_.async_read_some(
        asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
    if (!error) {
      co_await asio::async_write(inner_, asio::buffer(piece.data(), n),
                                 asio::redirect_error(asio::use_awaitable, error));
    }
  }
  // After the farewell, bytes that the client still sends are read and ignored. Closing at once
  // could lose bytes on their way to the client.
  if (has_said_farewell_) error = {};
  while (!error && client_.is_open()) {
    co_await client_.async_read_some(asio::buffer(piece),
                                     asio::redirect_error(asio::use_awaitable, error));
  }
  inner_.shutdown(asio::socket_base::shutdown_send, error);
}

// Carries the session's bytes to the client, to their end. While there are none, no buffer is held.
asio::awaitable<void> TlsTunnel::carry_out() {
  error_code error;
  bool is_sent = true;
  while (is_sent) {
    co_await inner_.async_wait(StreamSocket::wait_read,
                               asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    std::string piece(kOutBytes, '\0');
    const std::size_t n = co_await inner_.async_read_some(
        asio::buffer(piece), asio::redirect_error(asio::use_awaitable, error));
    if (error) break;
    is_sent = co_await write_all(tls_, std::string_view(piece.data(), n), *deadline_,
                                 limits_.write_timeout_s);
  }
  if (is_sent) co_await say_farewell();
  close_both();
}

// Tells the client that nothing more comes, and then waits until the session closes its end. The
// session does so at once unless it lingers.
asio::awaitable<void> TlsTunnel::say_farewell() {
  has_said_farewell_ = true;
  // The client's farewell counts as received, so that nothing waits for it.
  SSL_set_shutdown(tls_.native_handle(), SSL_RECEIVED_SHUTDOWN);
  error_code ignored;
  deadline_->set(limits_.linger_s);
  co_await tls_.async_shutdown(asio::redirect_error(asio::use_awaitable, ignored));
  client_.shutdown(asio::socket_base::shutdown_send, ignored);
  deadline_->clear();
  co_await end_closed_.async_wait(asio::redirect_error(asio::use_awaitable, ignored));
}

void TlsTunnel::end_is_closed() {
  end_closed_.expires_at(asio::steady_timer::time_point::min());
}

void TlsTunnel::close() {
  asio::dispatch(client_.get_executor(), [self = shared_from_this()] { self->close_both(); });
}

void TlsTunnel::close_both() {
  error_code ignored;
  client_.shutdown(asio::socket_base::shutdown_both, ignored);
  client_.close(ignored);
  inner_.close(ignored);
  end_is_closed();
}

}  // namespace pagoda
