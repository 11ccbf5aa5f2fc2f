#include "server/access.h"

#include <algorithm>

#include "core/sha256.h"

namespace pagoda {
namespace {

std::string digest_of(std::string_view key) {
  const Sha256Digest digest = sha256(key);
  return std::string(digest.begin(), digest.end());
}

// No early exit, so that the time is the same for every pair.
bool equal_in_constant_time(std::string_view a, std::string_view b) {
  unsigned difference = a.size() == b.size() ? 0 : 1;
  for (std::size_t i = 0; i < std::min(a.size(), b.size()); ++i) {
    difference |= static_cast<unsigned char>(a[i] ^ b[i]);
  }
  return difference == 0;
}

std::string_view bearer_token(std::string_view authorization) {
  constexpr std::string_view kScheme = "bearer ";
  if (authorization.size() <= kScheme.size()) return {};
  for (std::size_t i = 0; i < kScheme.size(); ++i) {
    const char c = authorization[i];
    const char lower = c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
    if (lower != kScheme[i]) return {};
  }
  authorization.remove_prefix(kScheme.size());
  const std::size_t start = authorization.find_first_not_of(' ');
  return start == std::string_view::npos ? std::string_view() : authorization.substr(start);
}

}  // namespace

ApiKeys::ApiKeys(const std::vector<std::string>& keys) {
  for (const std::string& key : keys) digests_.push_back(digest_of(key));
}

bool ApiKeys::accept(const HttpRequest& request) const {
  if (digests_.empty()) return true;
  const std::string digest = digest_of(bearer_token(request.header("authorization")));
  bool accepted = false;
  for (const std::string& known : digests_) accepted |= equal_in_constant_time(digest, known);
  return accepted;
}

bool needs_api_key(std::string_view path) {
  return path == "/v1" || path.starts_with("/v1/") || path == "/tokenize" || path == "/detokenize";
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

HttpHeaders Cors::headers(const HttpRequest& request) const {
  const std::string_view origin = request.header("origin");
  if (!allows(origin)) return {};
  if (allows_all_) return {{"Access-Control-Allow-Origin", "*"}};
  return {{"Access-Control-Allow-Origin", std::string(origin)}, {"Vary", "Origin"}};
}

bool Cors::is_preflight(const HttpRequest& request) const {
  return request.method == "OPTIONS" && !request.header("access-control-request-method").empty();
}

HttpResponse Cors::preflight(const HttpRequest& request) const {
  if (!allows(request.header("origin")))
    return {.status = 403, .content_type = "text/plain", .body = "origin not allowed"};
  HttpResponse response{.status = 204};
  response.headers = {{"Access-Control-Allow-Methods", "GET, HEAD, POST, OPTIONS"},
                      {"Access-Control-Allow-Headers", "*, Authorization, Content-Type"},
                      {"Access-Control-Max-Age", "600"}};
  return response;
}

}  // namespace pagoda
