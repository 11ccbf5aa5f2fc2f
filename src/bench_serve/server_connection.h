// A client's connection to a server, plain or by TLS, and how it is opened and read: every wait is
// a coroutine's, on one thread.
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

// Makes the context of https connections: TLS 1.2 or newer. Certificates are checked by the
// system's authorities, or those that SSL_CERT_FILE and SSL_CERT_DIR name; not at all with
// `verifies` false.
std::shared_ptr<boost::asio::ssl::context> make_tls_context(bool verifies);

class ServerConnection {
 public:
  // REQUIRES: `tls` is null for http, and outlives this otherwise.
  ServerConnection(boost::asio::io_context& context, boost::asio::ssl::context* tls);

  // Connects within `timeout`. kUnavailable: no server listens, or its certificate is not the
  // host's.
  boost::asio::awaitable<Status> open(const ServerUrl& url, std::chrono::seconds timeout);
  // Sends a request, and reads the answer's head.
  boost::asio::awaitable<Status> exchange(const std::string& text, AnswerParser& parser,
                                          std::chrono::seconds timeout);
  // Hands the body's bytes to `on_bytes` as they come; `timeout` is between two pieces.
  boost::asio::awaitable<Status> read_body(AnswerParser& parser, const OnBytes& on_bytes,
                                           std::chrono::seconds timeout);

  bool is_used = false;  // it has carried an answer: the server may have closed it since

 private:
  boost::asio::awaitable<Status> shake_hands(const ServerUrl& url);

  boost::beast::tcp_stream tcp_;
  std::optional<boost::asio::ssl::stream<boost::beast::tcp_stream&>> tls_;
  boost::beast::flat_buffer buffer_;  // what has been read too early
};

}  // namespace pagoda
