#include "bench_serve/server_connection.h"

#include <openssl/ssl.h>
#include <openssl/x509v3.h>

#include <boost/asio/ip/tcp.hpp>
#include <boost/asio/redirect_error.hpp>
#include <boost/asio/this_coro.hpp>
#include <boost/asio/use_awaitable.hpp>
#include <boost/asio/write.hpp>
#include <boost/beast/http/read.hpp>

namespace pagoda {

namespace asio = boost::asio;
namespace http = boost::beast::http;
namespace ssl = boost::asio::ssl;
using asio::ip::tcp;
using boost::system::error_code;

namespace {

constexpr std::size_t kReadBytes = 16 << 10;

// Sets the URL's host name or address, for which the certificate must be valid.
void expect_host(SSL* connection, const std::string& host) {
  error_code not_an_address;
  asio::ip::make_address(host, not_an_address);
  X509_VERIFY_PARAM* expected = SSL_get0_param(connection);
  if (!not_an_address) {
    X509_VERIFY_PARAM_set1_ip_asc(expected, host.c_str());
    return;
  }
  X509_VERIFY_PARAM_set1_host(expected, host.c_str(), 0);
  SSL_set_tlsext_host_name(connection, host.c_str());
}

}  // namespace

std::shared_ptr<ssl::context> make_tls_context(bool verifies) {
  auto context = std::make_shared<ssl::context>(ssl::context::tls_client);
  SSL_CTX_set_min_proto_version(context->native_handle(), TLS1_2_VERSION);
  error_code ignored;  // without authorities, the first connection fails with a certificate error
  context->set_default_verify_paths(ignored);
  context->set_verify_mode(verifies ? ssl::verify_peer : ssl::verify_none, ignored);
  return context;
}

ServerConnection::ServerConnection(asio::io_context& context, ssl::context* tls) : tcp_(context) {
  if (tls != nullptr) tls_.emplace(tcp_, *tls);
}

asio::awaitable<Status> ServerConnection::open(const ServerUrl& url, std::chrono::seconds timeout) {
  error_code error;
  tcp::resolver resolver(co_await asio::this_coro::executor);
  const auto endpoints = co_await resolver.async_resolve(
      url.host, url.port, asio::redirect_error(asio::use_awaitable, error));
  if (!error) {
    tcp_.expires_after(timeout);
    co_await tcp_.async_connect(endpoints, asio::redirect_error(asio::use_awaitable, error));
  }
  if (error) co_return unavailable("cannot connect: {}", error.message());
  tcp_.socket().set_option(tcp::no_delay(true), error);
  if (!tls_) co_return ok_status();
  co_return co_await shake_hands(url);
}

asio::awaitable<Status> ServerConnection::shake_hands(const ServerUrl& url) {
  expect_host(tls_->native_handle(), url.host);
  error_code error;
  co_await tls_->async_handshake(ssl::stream_base::client,
                                 asio::redirect_error(asio::use_awaitable, error));
  if (!error) co_return ok_status();
  const long verified = SSL_get_verify_result(tls_->native_handle());
  if (verified != X509_V_OK) {
    co_return unavailable("cannot connect: the server's certificate: {}",
                          X509_verify_cert_error_string(verified));
  }
  co_return unavailable("cannot connect: expected TLS, got: {}", error.message());
}

asio::awaitable<Status> ServerConnection::exchange(const std::string& text, AnswerParser& parser,
                                                   std::chrono::seconds timeout) {
  parser.body_limit(boost::none);
  error_code error;
  auto done = asio::redirect_error(asio::use_awaitable, error);
  const auto request = asio::buffer(text);
  tcp_.expires_after(timeout);
  if (tls_) {
    co_await asio::async_write(*tls_, request, done);
    if (!error) co_await http::async_read_header(*tls_, buffer_, parser, done);
  } else {
    co_await asio::async_write(tcp_, request, done);
    if (!error) co_await http::async_read_header(tcp_, buffer_, parser, done);
  }
  if (error) co_return unavailable("expected an HTTP answer, got: {}", error.message());
  co_return ok_status();
}

asio::awaitable<Status> ServerConnection::read_body(AnswerParser& parser, const OnBytes& on_bytes,
                                                    std::chrono::seconds timeout) {
  std::string piece(kReadBytes, '\0');
  while (!parser.is_done()) {
    auto& body = parser.get().body();
    body.data = piece.data();
    body.size = piece.size();
    error_code error;
    auto done = asio::redirect_error(asio::use_awaitable, error);
    if (tls_) {
      co_await http::async_read_some(*tls_, buffer_, parser, done);
    } else {
      co_await http::async_read_some(tcp_, buffer_, parser, done);
    }
    if (error == http::error::need_buffer) error = {};
    // Many servers close without TLS's close_notify. Only the body's own end counts.
    if (error == ssl::error::stream_truncated) {
      error = {};
      parser.put_eof(error);
    }
    const std::size_t num_bytes = piece.size() - body.size;
    if (num_bytes > 0) {
      tcp_.expires_after(timeout);
      Status status = on_bytes({piece.data(), num_bytes});
      if (!status.ok()) co_return status;
    }
    if (error) co_return unavailable("the connection broke: {}", error.message());
  }
  co_return ok_status();
}

}  // namespace pagoda
