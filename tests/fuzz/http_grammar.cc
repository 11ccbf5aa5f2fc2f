#include "tests/fuzz/http_grammar.h"

#include <fmt/format.h>

#include <string_view>

#include "tests/fuzz/odd_draw.h"

namespace pagoda {
namespace {

constexpr int kMaxRequests = 4;
constexpr int kMaxHeaderFields = 12;
constexpr int kMaxChunks = 6;

constexpr std::string_view kMethods[] = {"POST", "POST", "POST", "GET",     "HEAD",
                                         "PUT",  "post", "",     "OPTIONS", "M-SEARCH"};
constexpr std::string_view kTargets[] = {"/v1/completions",
                                         "/v1/chat/completions",
                                         "/v1/embeddings",
                                         "/v1/rerank",
                                         "/v1/score",
                                         "/v1/responses",
                                         "/v1/messages",
                                         "/v1/messages/count_tokens",
                                         "/completion",
                                         "/infill",
                                         "/api/chat",
                                         "/api/generate",
                                         "/api/embed",
                                         "/api/show",
                                         "/tokenize",
                                         "/detokenize",
                                         "/health",
                                         "/metrics",
                                         "/v1/models/%66ake%2dmodel",
                                         "/v1/models/%",
                                         "/",
                                         "/?a=b?c",
                                         "http://localhost/tokenize",
                                         "HTTPS://x",
                                         "*",
                                         "",
                                         "/%00",
                                         "//a/../b#c"};
constexpr std::string_view kVersions[] = {"HTTP/1.1", "HTTP/1.1", "HTTP/1.1", "HTTP/1.0",
                                          "HTTP/2.0", "HTTP/1.",  "http/1.1", ""};
constexpr std::string_view kNames[] = {"Host",
                                       "Content-Length",
                                       "Transfer-Encoding",
                                       "TE",
                                       "Connection",
                                       "Expect",
                                       "Content-Type",
                                       "Origin",
                                       "Sec-Fetch-Site",
                                       "Access-Control-Request-Method",
                                       "Authorization",
                                       "X-Request-Id",
                                       "Upgrade",
                                       "Trailer",
                                       "Proxy-Connection",
                                       "X"};
constexpr std::string_view kValues[] = {"localhost",
                                        "127.0.0.1:80",
                                        "[::1]:8000",
                                        "evil.example",
                                        "0",
                                        "5",
                                        "5, 5",
                                        "+5",
                                        "18446744073709551616",
                                        "chunked",
                                        "Chunked",
                                        "gzip, chunked",
                                        "xchunked",
                                        "keep-alive",
                                        "close",
                                        "upgrade",
                                        "100-continue",
                                        "trailers",
                                        "application/json; charset=utf-8",
                                        "text/plain",
                                        "null",
                                        "http://localhost",
                                        "cross-site",
                                        "",
                                        "\t a \t"};
constexpr std::string_view kSeparators[] = {": ", ": ", ": ", ":", " : ", ":\t", "", " "};
constexpr std::string_view kOddLineEnds[] = {"\n", "\r", "\r\r\n", "\n\r\n", "", "\r\n ", "\r\n\t"};
constexpr std::string_view kExtensions[] = {"",  "",    "",      ";a", ";a=b", ";a=\"b;\\\"\"",
                                            ";", " ;a", ";a=\"", "=a"};
constexpr std::string_view kLastChunks[] = {"0", "0", "0", "000", "0;a=b", "", "-0"};

std::string line_end(FuzzedDataProvider& draws) {
  return std::string(is_odd(draws) ? draws.PickValueInArray(kOddLineEnds) : "\r\n");
}

// Draws any bytes, seldom so many that they exceed a limit.
std::string raw(FuzzedDataProvider& draws) {
  std::string bytes = draws.ConsumeRandomLengthString(24);
  if (!is_odd(draws)) return bytes;
  bytes.append(draws.ConsumeIntegralInRange<std::size_t>(0, 40'000),
               draws.PickValueInArray({'0', 'a', ' ', '\0', '\xff'}));
  return bytes;
}

std::string field_line(FuzzedDataProvider& draws) {
  if (is_odd(draws)) return raw(draws) + line_end(draws);
  std::string line(draws.PickValueInArray(kNames));
  line += draws.PickValueInArray(kSeparators);
  line += is_odd(draws) ? raw(draws) : std::string(draws.PickValueInArray(kValues));
  return line + line_end(draws);
}

std::string field_lines(FuzzedDataProvider& draws) {
  std::string lines;
  const int num_fields = draws.ConsumeIntegralInRange(0, kMaxHeaderFields);
  for (int i = 0; i < num_fields && draws.ConsumeBool(); ++i) lines += field_line(draws);
  if (!is_odd(draws)) return lines;
  const std::string line = field_line(draws);
  const int num_more = draws.ConsumeIntegralInRange(0, 300);
  for (int i = 0; i < num_more; ++i) lines += line;
  return lines;
}

// Draws `body` in chunks, with extensions, trailers and mistakes around them.
std::string chunked(FuzzedDataProvider& draws, std::string_view body) {
  std::string chunks;
  for (int i = 0; i < kMaxChunks && !body.empty(); ++i) {
    const bool is_last = i + 1 == kMaxChunks;
    const auto size =
        is_last ? body.size() : draws.ConsumeIntegralInRange<std::size_t>(1, body.size());
    chunks += is_odd(draws) ? raw(draws) : fmt::format("{:x}", size);
    chunks += draws.PickValueInArray(kExtensions);
    chunks += line_end(draws);
    chunks += body.substr(0, size);
    chunks += line_end(draws);
    body.remove_prefix(size);
  }
  chunks += draws.PickValueInArray(kLastChunks);
  return chunks + line_end(draws) + field_lines(draws) + line_end(draws);
}

std::string request(FuzzedDataProvider& draws, const DrawBody& draw_body) {
  std::string bytes(draws.PickValueInArray(kMethods));
  bytes += ' ';
  bytes += is_odd(draws) ? raw(draws) : std::string(draws.PickValueInArray(kTargets));
  bytes += ' ';
  bytes += draws.PickValueInArray(kVersions);
  bytes += line_end(draws);
  const std::string fields = field_lines(draws);
  if (fields.find("Host") == std::string::npos)
    bytes += "Host: localhost\r\n";  // else every request would be refused
  bytes += fields;
  const std::string body = draw_body(draws);
  switch (draws.ConsumeIntegralInRange(0, 3)) {
    case 0:
      return bytes + line_end(draws);
    case 1:
      bytes += "Transfer-Encoding: chunked" + line_end(draws) + line_end(draws);
      return bytes + chunked(draws, body);
    case 2:  // a length that may be wrong
      return bytes +
             fmt::format("Content-Length: {}\r\n\r\n", draws.ConsumeIntegralInRange(0, 99)) + body;
    default:
      bytes += fmt::format("Content-Length: {}", body.size()) + line_end(draws) + line_end(draws);
      return bytes + body;
  }
}

}  // namespace

std::string draw_http(FuzzedDataProvider& draws, const DrawBody& draw_body) {
  std::string bytes;
  const int num_requests = draws.ConsumeIntegralInRange(1, kMaxRequests);
  for (int i = 0; i < num_requests; ++i) bytes += request(draws, draw_body);
  if (is_odd(draws)) bytes += raw(draws);
  return bytes;
}

}  // namespace pagoda
