#include "bench_serve/server_url.h"

#include <algorithm>

namespace pagoda {

namespace {

constexpr std::string_view kHttp = "http://", kHttps = "https://";

Status malformed(std::string_view flag, std::string_view text) {
  return invalid_argument("[{}] expected http://HOST[:PORT][/PREFIX] or https, got '{}'", flag,
                          text);
}

bool is_port(std::string_view text) {
  return !text.empty() && text.size() <= 5 &&
         std::all_of(text.begin(), text.end(), [](char c) { return c >= '0' && c <= '9'; });
}

bool is_printable(std::string_view text) {
  return std::all_of(text.begin(), text.end(), [](char c) { return c > 0x20 && c < 0x7f; });
}

void drop_suffix(std::string_view& text, std::string_view suffix) {
  if (text.ends_with(suffix)) text.remove_suffix(suffix.size());
}

}  // namespace

std::string ServerUrl::authority() const {
  const bool is_v6 = host.find(':') != std::string::npos;
  return fmt::format("{}{}{}:{}", is_v6 ? "[" : "", host, is_v6 ? "]" : "", port);
}

std::string ServerUrl::text() const {
  return fmt::format("{}{}{}", is_https ? kHttps : kHttp, authority(), prefix);
}

Result<ServerUrl> parse_server_url(std::string_view flag, std::string_view text) {
  ServerUrl url = {.is_https = text.starts_with(kHttps)};
  const std::string_view scheme = url.is_https ? kHttps : kHttp;
  if (!text.starts_with(scheme) || !is_printable(text)) return malformed(flag, text);
  std::string_view rest = text.substr(scheme.size());
  if (url.is_https) url.port = "443";
  const std::size_t slash = std::min(rest.find('/'), rest.size());
  std::string_view prefix = rest.substr(slash);
  drop_suffix(prefix, "/");
  drop_suffix(prefix, "/v1");
  url.prefix = std::string(prefix);
  std::string_view authority = rest.substr(0, slash);
  std::size_t host_end = authority.find(':');
  if (authority.starts_with('[')) {
    const std::size_t bracket = authority.find(']');
    if (bracket == std::string_view::npos) return malformed(flag, text);
    url.host = std::string(authority.substr(1, bracket - 1));
    host_end = bracket + 1;
  } else {
    url.host = std::string(authority.substr(0, host_end));
  }
  if (url.host.empty()) return malformed(flag, text);
  if (host_end >= authority.size()) return url;
  if (authority[host_end] != ':' || !is_port(authority.substr(host_end + 1)))
    return malformed(flag, text);
  url.port = std::string(authority.substr(host_end + 1));
  return url;
}

}  // namespace pagoda
