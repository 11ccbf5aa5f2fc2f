// A client's connection to a server, plain or by TLS. All waits are coroutines on one thread.
#pragma once

#include <boost/asio/awaitable.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/ssl/context.hpp>
#include <boost/asio/ssl/stream.hpp>
#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/core/tcp_stream.hpp>
#include <boost/beast/http/buffer_body.hpp>
#include <boost/beast/http/parser.hpp>
#include <chrono>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "bench_serve/server_url.h"
#include "core/status.h"

namespace pagoda {

using AnswerParser = boost::beast::http::response_parser<boost::beast::http::buffer_body>;
using OnBytes = std::function<Status(std::string_view)>;

// Makes the context of https connections, with TLS 1.2 or newer. Certificates are checked with the
// system's authorities, or with those in SSL_CERT_FILE and SSL_CERT_DIR. If `verifies` is false,
// they are not checked.
std::shared_ptr<boost::asio::ssl::context> make_tls_context(bool verifies);

class ServerConnection {
 public:
  // REQUIRES: `tls` is null for http, and outlives this otherwise.
  ServerConnection(boost::asio::io_context& context, boost::asio::ssl::context* tls);

  // Connects within `timeout`. kUnavailable: no server listens, or its certificate is not valid for
  // the host.
  boost::asio::awaitable<Status> open(const ServerUrl& url, std::chrono::seconds timeout);
  // Sends a request and reads the answer's header.
  boost::asio::awaitable<Status> exchange(const std::string& text, AnswerParser& parser,
                                          std::chrono::seconds timeout);
  // Passes the body's bytes to `on_bytes` while they arrive. `timeout` applies to each piece.
  boost::asio::awaitable<Status> read_body(AnswerParser& parser, const OnBytes& on_bytes,
                                           std::chrono::seconds timeout);

  bool is_used = false;  // it has carried an answer, so the server may have closed it since

 private:
  boost::asio::awaitable<Status> shake_hands(const ServerUrl& url);

  boost::beast::tcp_stream tcp_;
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
  boost::beast::flat_buffer buffer_;  // bytes read beyond the last answer
};

}  // namespace pagoda
