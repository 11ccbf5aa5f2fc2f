#include "server/http/http_request_parser.h"

#include <fmt/format.h>

#include <algorithm>
#include <boost/beast/core/string.hpp>
#include <boost/beast/http/error.hpp>
#include <optional>

#include "server/base/error_response.h"

namespace pagoda {
namespace {

namespace http = boost::beast::http;

constexpr std::size_t kReadBytes = 4 << 10;
// The bytes that may stand around each byte of a chunked body, besides max_header_bytes in all. A
// chunk of one byte has five.
constexpr std::size_t kFramingOfBodyByte = 8;
// The fewest bytes that follow wherever a chunk begins: "0\r\n\r\n". After the beginning of a
// chunk, Beast before version 356 must not get fewer: an assertion would end the process.
constexpr std::size_t kLastChunkBytes = BOOST_BEAST_VERSION < 356 ? 5 : 1;

// Returns whether an error after the header is from one of Beast's own limits. Boost 1.87 added the
// trailer's limit. Boost 1.91 added that of an unfinished line at a chunk's beginning.
bool is_over_limit_behind_head(const boost::beast::error_code& error, std::string_view waiting) {
  return error == http::error::header_limit || (error == http::error::bad_chunk_extension &&
                                                waiting.find("\r\n", 2) == std::string_view::npos);
}

std::string_view text_of(boost::beast::string_view text) {
  return {text.data(), text.size()};
}

bool is_number(std::string_view text) {
  return !text.empty() && text.find_first_not_of("0123456789") == std::string_view::npos;
}

// A request's target, in absolute form (as proxies get it) or in origin form.
struct Target {
  std::optional<std::string_view> host;  // with its port; absent: origin form
  std::string_view path;                 // from the first slash on; empty where there is none
  std::string_view query;
};

Target read_target(std::string_view text) {
  Target target;
  for (const std::string_view scheme : {"http://", "https://"}) {
    if (!boost::beast::iequals(text.substr(0, scheme.size()), scheme)) continue;
    text.remove_prefix(scheme.size());
    target.host = text.substr(0, text.find_first_of("/?#"));
    text.remove_prefix(target.host->size());
    break;
  }
  const std::size_t query = text.find('?');
  target.path = text.substr(0, query);
  if (query != std::string_view::npos) target.query = text.substr(query + 1);
  return target;
}

// Returns all values of a header, joined by ", " (the same as several lines); nullopt: none.
std::optional<std::string> joined(const HttpHeaders& headers, std::string_view name) {
  std::optional<std::string> values;
  for (const auto& [key, value] : headers) {
    if (key == name) values = values ? *values + ", " + value : value;
  }
  return values;
}

}  // namespace

HttpRequestParser::HttpRequestParser(const HttpLimits& limits,
                                     std::shared_ptr<RequestMemory> memory)
    : limits_(limits), memory_(std::move(memory)) {
  header_limit(static_cast<std::uint32_t>(limits.max_header_bytes));
  body_limit(limits.max_body_bytes);
}

HttpRequestParser::Progress HttpRequestParser::parse(boost::beast::flat_buffer& received) {
  return is_header_done() ? parse_body(received) : parse_head(received);
}

HttpRequestParser::Progress HttpRequestParser::parse_head(boost::beast::flat_buffer& received) {
  if (received.size() == 0) return Progress::kNeedsMore;
  ErrorCode error;
  const std::size_t num_taken = put(received.data(), error);
  received.consume(num_taken);
  num_head_bytes_ += num_taken;
  // The base class limits the bytes that wait at a time; this check limits the whole header.
  const bool needs_more = error == http::error::need_more;
  const std::size_t num_waiting = needs_more ? received.size() : 0;
  if (is_refused_) return Progress::kRefused;
  if (num_head_bytes_ + num_waiting > limits_.max_header_bytes) return refuse_long_header();
  if (needs_more) return Progress::kNeedsMore;
  if (error) return refuse_for(error);
  if (std::string flaw = ambiguity(); !flaw.empty())
    return refuse(400, std::move(flaw), "bad_http");
  if (target_host_ && request_.header("host").empty())  // HTTP/1.0 without a Host
    request_.headers.emplace_back("host", *target_host_);
  eager(true);
  return Progress::kHead;
}

// Returns, in words, why it is doubtful where the request ends or which host it asks; "": no doubt.
std::string HttpRequestParser::ambiguity() const {
  const HttpHeaders& headers = request_.headers;
  const auto num_hosts = std::count_if(headers.begin(), headers.end(),
                                       [](const auto& header) { return header.first == "host"; });
  if (num_hosts > 1 || (num_hosts == 0 && version_ >= 11))
    return fmt::format("Host: expected one, got {}", num_hosts);
  const std::string_view host = request_.header("host");
  if (target_host_ && num_hosts == 1 && !boost::beast::iequals(host, *target_host_))
    return fmt::format("Host: expected the target's, {}, got {}", *target_host_, host);
  const auto length = joined(headers, "content-length");
  if (length && !is_number(*length))
    return fmt::format("Content-Length: expected one number, got {}", *length);
  const auto coding = joined(headers, "transfer-encoding");
  if (coding && !boost::beast::iequals(*coding, "chunked"))
    return fmt::format("Transfer-Encoding: expected chunked, got {}", *coding);
  if (coding && version_ < 11) return "Transfer-Encoding: expected none in HTTP/1.0";
  return "";
}

HttpRequestParser::Progress HttpRequestParser::parse_body(boost::beast::flat_buffer& received) {
  ErrorCode error;
  const std::size_t num_needed = has_begun_chunk_ ? kLastChunkBytes : 1;
  if (!is_done() && received.size() >= num_needed) {
    const std::size_t num_taken = put(received.data(), error);
    received.consume(num_taken);
    num_bytes_behind_head_ += num_taken;
    has_begun_chunk_ = chunked() && received.size() > 0;
  }
  if (is_refused_) return Progress::kRefused;
  const std::string_view waiting(static_cast<const char*>(received.data().data()), received.size());
  const bool is_over_limit = is_over_limit_behind_head(error, waiting);
  if (error && error != http::error::need_more && !is_over_limit) return refuse_for(error);
  const std::size_t num_waiting = is_done() ? 0 : received.size();
  const std::size_t num_around = num_bytes_behind_head_ + num_waiting - request_.body.size();
  if (is_over_limit || num_waiting > limits_.max_header_bytes ||
      num_around > limits_.max_header_bytes + kFramingOfBodyByte * request_.body.size()) {
    return refuse(413,
                  fmt::format("chunk headers and trailer are over the limit of {} bytes, and {} "
                              "more for each byte of the body",
                              limits_.max_header_bytes, kFramingOfBodyByte),
                  "chunk_headers_too_large");
  }
  if (!is_done()) return Progress::kNeedsMore;
  request_.arrival = Clock::system().now();
  return Progress::kWhole;
}

std::size_t HttpRequestParser::read_size() const {
  return has_large_body() ? kMaxReadBytes : kReadBytes;
}

bool HttpRequestParser::expects_continue() const {
  return !is_done() && boost::beast::iequals(request_.header("expect"), "100-continue");
}

bool HttpRequestParser::can_skip_body() const {
  if (is_done()) return true;
  const auto num_left = content_length_remaining();
  return num_left && *num_left <= kSmallBodyBytes && !expects_continue();
}

HttpRequestParser::Progress HttpRequestParser::refuse(int status, std::string message,
                                                      std::string code) {
  return refuse(error_response({status, std::move(message), "", std::move(code)}));
}

HttpRequestParser::Progress HttpRequestParser::refuse(HttpResponse refusal) {
  is_refused_ = true;
  refusal_ = std::move(refusal);
  return Progress::kRefused;
}

HttpRequestParser::Progress HttpRequestParser::refuse_long_header() {
  return refuse(431,
                fmt::format("the header is over the limit of {} bytes", limits_.max_header_bytes),
                "header_too_large");
}

HttpRequestParser::Progress HttpRequestParser::refuse_for(const ErrorCode& error) {
  if (error == http::error::header_limit) return refuse_long_header();
  if (error == http::error::body_limit) {
    return refuse(413,
                  fmt::format("the body is over the limit of {} bytes", limits_.max_body_bytes),
                  "body_too_large");
  }
  return refuse(400, fmt::format("this is not an HTTP/1.1 request: {}", error.message()),
                "bad_http");
}

// Appends to the body. Its memory grows with the bytes received, not with the announced length.
void HttpRequestParser::append(StringView piece, ErrorCode& error) {
  std::string& body = request_.body;
  if (!request_.held_body) request_.held_body.emplace(MemoryAccount::of_body(memory_));
  if (!request_.held_body->grow(std::ssize(piece)).ok()) {
    refuse(503, "too many large requests are on their way, or waiting: ask again later",
           "too_many_bytes");
    error = http::error::body_limit;
    return;
  }
  try {
    body.append(piece.data(), piece.size());
  } catch (const std::bad_alloc& failure) {
    refuse(failure_response(request_.method + " " + request_.path, failure));
    error = http::error::body_limit;
  }
}

void HttpRequestParser::on_request_impl(http::verb /*verb*/, StringView method, StringView target,
                                        int version, ErrorCode& /*error*/) {
  version_ = static_cast<unsigned>(version);
  request_.method = text_of(method);
  const Target parsed = read_target(text_of(target));
  if (parsed.host) target_host_ = *parsed.host;
  request_.path = parsed.path.empty() ? "/" : parsed.path;
  request_.query = parsed.query;
}

void HttpRequestParser::on_field_impl(http::field /*field*/, StringView name, StringView value,
                                      ErrorCode& error) {
  if (is_header_done()) return;  // a field of the trailer
  if (request_.headers.size() == limits_.max_header_fields) {
    refuse(431, fmt::format("the header has more than {} fields", limits_.max_header_fields),
           "header_too_large");
    error = http::error::header_limit;
    return;
  }
  request_.headers.emplace_back(lower_case(text_of(name)), std::string(value));
}

std::size_t HttpRequestParser::on_body_impl(StringView body, ErrorCode& error) {
  append(body, error);
  return body.size();
}

std::size_t HttpRequestParser::on_chunk_body_impl(std::uint64_t /*remaining*/, StringView body,
                                                  ErrorCode& error) {
  append(body, error);
  return body.size();
}

}  // namespace pagoda
