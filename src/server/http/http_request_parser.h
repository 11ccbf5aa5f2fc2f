// HttpRequestParser: parses one request from the bytes of a connection. It has no socket.
//
// All that a client can make long is bounded while it comes, in pieces of any size:
// - the header's bytes and fields;
// - the body;
// - what stands around the pieces of a chunked body: chunk headers with their extensions, and the
//   trailer, which is read and ignored.
// So received bytes that are not yet parsed take at most max_header_bytes when more is read.
//
// A request is refused if a proxy and this server might disagree on where it ends (RFC 9112, 6.3
// and 11.2):
// - a Content-Length that is not one number;
// - a Transfer-Encoding that is not "chunked" alone, or comes in HTTP/1.0 or beside a
//   Content-Length;
// - white space before a colon.
// It is also refused if they might disagree on the host that it asks (RFC 9112, 3.2): no Host in
// HTTP/1.1, two of them, or one that differs from the target's host.
#pragma once

#include <boost/beast/core/flat_buffer.hpp>
#include <boost/beast/http/basic_parser.hpp>
#include <boost/beast/version.hpp>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>

#include "server/base/http_message.h"
#include "server/http/http_limits.h"
#include "serving/request_memory.h"

namespace pagoda {

class HttpRequestParser final : private boost::beast::http::basic_parser<true> {
 public:
  static constexpr std::size_t kMaxReadBytes = 64 << 10;  // in one read

  enum class Progress { kNeedsMore, kHead, kWhole, kRefused };

  // REQUIRES: `limits` outlive the parser.
  HttpRequestParser(const HttpLimits& limits, std::shared_ptr<RequestMemory> memory);

  // Parses bytes at the front of `received`: first up to the header's end (kHead), then up to the
  // request's end (kWhole). The bytes after it belong to the next request. After kRefused, the
  // connection can't be used for another request.
  Progress parse(boost::beast::flat_buffer& received);

  // Returns whether kSmallBodyBytes of the body have come, or more.
  bool has_large_body() const { return request_.body.size() >= kSmallBodyBytes; }
  // Returns how many bytes to read at a time.
  std::size_t read_size() const;
  // Returns the request as far as it has been parsed; after kWhole it is whole.
  HttpRequest& request() { return request_; }
  // Returns the response to the request after kRefused.
  HttpResponse& refusal() { return refusal_; }

  unsigned version() const { return version_; }  // 10 or 11
  // Returns whether the connection is kept. This and the functions below are valid after kHead.
  bool keeps_alive() const { return keep_alive(); }
  bool is_whole() const { return is_done(); }
  bool expects_continue() const;
  // Returns whether the rest of the body is sure to come, and short enough to be read and ignored.
  bool can_skip_body() const;

 private:
  using ErrorCode = boost::beast::error_code;
  using StringView = boost::beast::string_view;

  Progress parse_head(boost::beast::flat_buffer& received);
  Progress parse_body(boost::beast::flat_buffer& received);
  Progress refuse(HttpResponse refusal);
  Progress refuse(int status, std::string message, std::string code);
  Progress refuse_for(const ErrorCode& error);
  Progress refuse_long_header();
  void append(StringView piece, ErrorCode& error);

  void on_request_impl(boost::beast::http::verb verb, StringView method, StringView target,
                       int version, ErrorCode& error) override;
  void on_response_impl(int, StringView, int, ErrorCode&) override {}
  void on_field_impl(boost::beast::http::field, StringView name, StringView value,
                     ErrorCode& error) override;
#if BOOST_BEAST_VERSION >= \
    359  // Boost 1.90: until then a trailer's fields were on_field_impl()'s, too
  void on_trailer_field_impl(boost::beast::http::field, StringView, StringView,
                             ErrorCode&) override {}
#endif
  void on_header_impl(ErrorCode&) override {}
  void on_body_init_impl(const boost::optional<std::uint64_t>&, ErrorCode&) override {}
  std::size_t on_body_impl(StringView body, ErrorCode& error) override;
  void on_chunk_header_impl(std::uint64_t, StringView, ErrorCode&) override {}
  std::size_t on_chunk_body_impl(std::uint64_t, StringView body, ErrorCode& error) override;
  void on_finish_impl(ErrorCode&) override {}

  std::string ambiguity() const;

  const HttpLimits& limits_;
  const std::shared_ptr<RequestMemory> memory_;
  HttpRequest request_;
  HttpResponse refusal_;
  unsigned version_ = 11;
  std::optional<std::string> target_host_;  // the host in the target, with its port; absent: none
  bool is_refused_ = false;
  std::size_t num_head_bytes_ = 0;
  std::size_t num_bytes_behind_head_ = 0;  // of the body and what stands around it
  bool has_begun_chunk_ = false;           // a chunk has begun: more of it must follow
};

}  // namespace pagoda
