#include "server/http/http_head.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

namespace pagoda {
namespace {

constexpr std::size_t kMaxIdBytes = 128;

bool is_visible(char c) {
  return c > 0x20 && c < 0x7f;
}

void append_headers(std::string& head, const HttpHeaders& headers) {
  for (const auto& [name, value] : headers) head += fmt::format("{}: {}\r\n", name, value);
}

// Returns the status line and the headers that all answers have, each with its line's end.
std::string response_head(const ResponseLine& line) {
  std::string head = fmt::format("HTTP/1.{} {} {}\r\n", line.version >= 11 ? 1 : 0, line.status,
                                 reason_phrase(line.status));
  if (line.close) {
    head += "Connection: close\r\n";
  } else if (line.version < 11) {
    head += "Connection: keep-alive\r\n";
  }
  // Anthropic's clients look for the id without "X-".
  head += fmt::format("Date: {0}\r\nX-Request-Id: {1}\r\nRequest-Id: {1}\r\n",
                      http_date(std::time(nullptr)), line.request_id);
  return head;
}

}  // namespace

std::string http_date(std::time_t time) {
  static constexpr std::array kDays = {"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"};
  static constexpr std::array kMonths = {"Jan", "Feb", "Mar", "Apr", "May", "Jun",
                                         "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"};
  std::tm utc{};
  gmtime_r(&time, &utc);
  return fmt::format("{}, {:02} {} {:04} {:02}:{:02}:{:02} GMT", kDays[utc.tm_wday], utc.tm_mday,
                     kMonths[utc.tm_mon], 1900 + utc.tm_year, utc.tm_hour, utc.tm_min, utc.tm_sec);
}

std::string request_id_for(std::string_view clients_own) {
  const bool is_sane = !clients_own.empty() && clients_own.size() <= kMaxIdBytes &&
                       std::all_of(clients_own.begin(), clients_own.end(), is_visible);
  if (is_sane) return std::string(clients_own);
  std::random_device device;
  std::string id = "req-";
  for (int i = 0; i < 4; ++i) id += fmt::format("{:08x}", device());
  return id;
}

std::string whole_head(const ResponseLine& line, const HttpResponse& response,
                       const HttpHeaders& more) {
  std::string head = response_head(line);
  if (response.status != 204) {
    head += fmt::format("Content-Type: {}\r\nContent-Length: {}\r\n", response.content_type,
                        response.text().size());
  }
  append_headers(head, response.headers);
  append_headers(head, more);
  return head += "\r\n";
}

std::string stream_head(const ResponseLine& line, std::string_view content_type,
                        const HttpHeaders& more) {
  std::string head = response_head(line);
  head += fmt::format("Content-Type: {}\r\nCache-Control: no-cache\r\nX-Accel-Buffering: no\r\n",
                      content_type);
  if (line.version >= 11) head += "Transfer-Encoding: chunked\r\n";
  append_headers(head, more);
  return head += "\r\n";
}

std::string in_chunks(unsigned version, const std::string& text, bool is_last) {
  if (version < 11) return text;
  std::string chunks;
  chunks.reserve(text.size() + 32);
  if (!text.empty()) {
    chunks += fmt::format("{:x}\r\n", text.size());
    chunks += text;
    chunks += "\r\n";
  }
  if (is_last) chunks += "0\r\n\r\n";
  return chunks;
}

}  // namespace pagoda
