#include "server/http/access.h"

#include <algorithm>
#include <boost/asio/ip/address.hpp>
#include <iterator>

namespace pagoda {
namespace {

// Compares without an early exit, so that the time is the same for every pair.
bool equal_in_constant_time(const Sha256Digest& a, const Sha256Digest& b) {
  unsigned difference = 0;
  for (std::size_t i = 0; i < a.size(); ++i) difference |= static_cast<unsigned>(a[i] ^ b[i]);
  return difference == 0;
}

// Returns an opaque id: a digest that shows neither key nor name. Keys have no spaces, so the
// digest of "name ..." is never that of a key.
std::string id_of(const ApiKey& key) {
  const Sha256Digest id = key.name.empty() ? key.digest : sha256("name " + key.name);
  return std::string(id.begin(), id.end());
}

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  if (lower_case(authorization.substr(0, kScheme.size())) != kScheme) return {};
  authorization.remove_prefix(kScheme.size());
  const std::size_t start = authorization.find_first_not_of(' ');
  return start == std::string_view::npos ? std::string_view() : authorization.substr(start);
}

bool is_address(std::string_view host) {
  boost::system::error_code error;
  boost::asio::ip::make_address(std::string(host), error);
  return !error;
}

// Returns a Host header without its port: "::1" for "[::1]:8000", "localhost" for "localhost:8000".
// Returns nullopt if the rest is no port, or if brackets hold no address.
std::optional<std::string_view> host_name(std::string_view header) {
  const bool is_bracketed = header.starts_with('[');
  const std::size_t end = is_bracketed ? header.find(']') : header.find(':');
  if (is_bracketed && end == std::string_view::npos) return std::nullopt;
  std::string_view name = header.substr(0, end);
  std::string_view port = end == std::string_view::npos ? "" : header.substr(end);
  if (is_bracketed) {
    name.remove_prefix(1);
    port.remove_prefix(1);
    if (name.find(':') == std::string_view::npos || !is_address(name)) return std::nullopt;
  }
  if (port.empty()) return name;
  const bool is_port =
      port.front() == ':' && port.find_first_not_of("0123456789", 1) == std::string_view::npos;
  return is_port ? std::optional(name) : std::nullopt;
}

}  // namespace

ApiKeys::ApiKeys(std::vector<ApiKey> keys) : keys_(std::move(keys)) {}

std::optional<KnownClient> ApiKeys::client_of(const HttpRequest& request) const {
  if (keys_.empty()) return KnownClient{};
  std::string_view key = bearer_token(request.header("authorization"));
  if (key.empty()) key = request.header("x-api-key");
  if (key.empty()) return std::nullopt;
  const Sha256Digest digest = sha256(key);
  const ApiKey* found = nullptr;
  for (const ApiKey& known : keys_) {
    if (equal_in_constant_time(digest, known.digest)) found = &known;
  }
  if (found == nullptr) return std::nullopt;
  return KnownClient{.id = id_of(*found), .name = found->name};
}

Cors::Cors(std::vector<std::string> allowed_origins)
    : allowed_origins_(std::move(allowed_origins)) {
  allows_all_ =
      std::find(allowed_origins_.begin(), allowed_origins_.end(), "*") != allowed_origins_.end();
}

bool Cors::allows(std::string_view origin) const {
  if (origin.empty()) return false;
  return allows_all_ || std::find(allowed_origins_.begin(), allowed_origins_.end(), origin) !=
                            allowed_origins_.end();
}

bool Cors::refuses(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (allows_all_ || allows(origin)) return false;
  const std::string_view site = request.header("sec-fetch-site");
  if (!site.empty()) {
    const bool is_link = request.method == "GET" && request.header("sec-fetch-mode") == "navigate";
    return site != "same-origin" && site != "none" && !is_link;
  }
  if (origin.empty()) return false;
  const std::size_t scheme_end = origin.find("://");
  return scheme_end == std::string_view::npos ||
         lower_case(origin.substr(scheme_end + 3)) != lower_case(request.header("host"));
}

HttpHeaders Cors::headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (!allows(origin)) return {};
  const std::pair<std::string, std::string> exposed = {"Access-Control-Expose-Headers",
                                                       "X-Request-Id, Request-Id, X-Seed"};
  if (allows_all_) return {{"Access-Control-Allow-Origin", "*"}, exposed};
  return {{"Access-Control-Allow-Origin", std::string(origin)}, {"Vary", "Origin"}, exposed};
}

bool Cors::is_preflight(const HttpRequest& request) const {
  return request.method == "OPTIONS" && !request.header("access-control-request-method").empty();
}

HttpResponse Cors::preflight() const {
  HttpResponse response{.status = 204};
  response.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST, DELETE, OPTIONS"},
                      {"Access-Control-Allow-Headers", "*, Authorization, Content-Type"},
                      {"Access-Control-Max-Age", "600"}};
  return response;
}

AllowedHosts::AllowedHosts(std::vector<std::string> names) : names_(std::move(names)) {
  for (std::string& name : names_) name = lower_case(name);
}

bool AllowedHosts::allow(std::string_view host) const {
  if (host.empty()) return true;
  const std::optional<std::string_view> as_sent = host_name(host);
  if (!as_sent) return false;
  const std::string name = lower_case(*as_sent);
  if (name == "localhost" || name.ends_with(".localhost") || is_address(name)) return true;
  return std::any_of(names_.begin(), names_.end(), [&](std::string_view allowed) {
    if (allowed == "*" || allowed == name) return true;
    return allowed.starts_with("*.") && name.ends_with(allowed.substr(1));
  });
}

bool is_json_type(std::string_view content_type) {
  const std::string type = lower_case(content_type.substr(0, content_type.find_first_of("; \t")));
  return type.empty() || type == "application/json" || type == "application/x-www-form-urlencoded";
}

}  // namespace pagoda
