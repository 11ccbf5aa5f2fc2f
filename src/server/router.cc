#include "server/router.h"

#include <algorithm>
#include <array>

#include "server/chat_completions.h"
#include "server/completions.h"
#include "server/information.h"
#include "server/openapi_document.h"
#include "server/page.h"

namespace pagoda {
namespace {

constexpr std::string_view kModelPrefix = "/v1/models/";

constexpr std::array<std::string_view, 6> kGetPaths = {"/",        "/health",    "/version",
                                                       "/metrics", "/v1/models", "/openapi.json"};
constexpr std::array<std::string_view, 4> kPostPaths = {"/v1/completions", "/v1/chat/completions",
                                                        "/tokenize", "/detokenize"};

template <typename Paths>
bool contains(const Paths& paths, std::string_view path) {
  return std::find(paths.begin(), paths.end(), path) != paths.end();
}

bool is_model_path(std::string_view path) {
  return path.starts_with(kModelPrefix) && path.size() > kModelPrefix.size();
}

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

// %41 to A; what is no escape stays as it is.
std::string percent_decoded(std::string_view text) {
  std::string decoded;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const bool is_escape = text[i] == '%' && i + 2 < text.size() && hex_value(text[i + 1]) >= 0 &&
                           hex_value(text[i + 2]) >= 0;
    decoded += is_escape ? static_cast<char>(hex_value(text[i + 1]) * 16 + hex_value(text[i + 2]))
                         : text[i];
    if (is_escape) i += 2;
  }
  return decoded;
}

// Of a path that is known.
std::string_view methods_of(std::string_view path) {
  return contains(kPostPaths, path) ? "POST" : "GET, HEAD";
}

std::optional<ApiError> error_of_target(const HttpRequest& head, const std::string& path) {
  const bool is_post_path = contains(kPostPaths, path);
  if (!is_post_path && !contains(kGetPaths, path) && !is_model_path(path)) {
    return ApiError{404, fmt::format("there is nothing at {} {}", head.method, path), "",
                    "not_found"};
  }
  const bool is_get = head.method == "GET" || head.method == "HEAD";
  if (is_post_path ? head.method != "POST" : !is_get) {
    return ApiError{405,
                    fmt::format("{}: expected {}, got {}", path, methods_of(path), head.method), "",
                    "method_not_allowed"};
  }
  if (const auto type = head.header("content-type"); is_post_path && !is_json_type(type)) {
    return ApiError{415, fmt::format("Content-Type: expected application/json, got {}", type), "",
                    "unsupported_media_type"};
  }
  return {};
}

}  // namespace

Router::Router(ApiService& service, const RouterOptions& options)
    : service_(service),
      api_keys_(options.api_keys),
      cors_(options.allowed_origins),
      allowed_hosts_(options.allowed_hosts),
      root_path_(options.root_path),
      openapi_document_(openapi_document(service, !options.api_keys.empty(), options.root_path)) {}

std::string Router::below_root(std::string_view path) const {
  std::string_view below = path;
  if (below.starts_with(root_path_)) below.remove_prefix(root_path_.size());
  if (below.empty()) return "/";
  return std::string(below.front() == '/' ? below : path);
}

std::optional<HttpResponse> Router::refuse(const HttpRequest& head) const {
  const std::string path = below_root(head.path);
  const std::optional<ApiError> error = error_of_head(head, path);
  if (!error) return {};
  HttpResponse response = error_response(*error);
  if (error->status == 405) response.headers.emplace_back("Allow", methods_of(path));
  for (auto& header : cors_.headers(head)) response.headers.push_back(std::move(header));
  return response;
}

std::optional<ApiError> Router::error_of_head(const HttpRequest& head,
                                              const std::string& path) const {
  if (const auto host = head.header("host"); !allowed_hosts_.allow(host)) {
    return ApiError{403,
                    fmt::format("Host: expected an address, localhost or a name given by "
                                "--allowed-hosts, got {}",
                                host),
                    "", "host_not_allowed"};
  }
  if (cors_.refuses(head)) {
    const auto origin = head.header("origin");
    return ApiError{403,
                    fmt::format("Origin: expected this server's own or one given by "
                                "--allowed-origins, got {}",
                                origin.empty() ? "none from a page elsewhere" : origin),
                    "", "origin_not_allowed"};
  }
  // A browser sends no key with its preflight.
  if (cors_.is_preflight(head)) return {};
  if (needs_api_key(path) && !api_keys_.client_of(head)) {
    return ApiError{401, "expected a valid API key in 'Authorization: Bearer KEY'", "",
                    "invalid_api_key"};
  }
  return error_of_target(head, path);
}

HttpReply Router::handle(HttpRequest request, const Wake& wake) const {
  request.path = below_root(request.path);
  if (needs_api_key(request.path)) request.client = api_keys_.client_of(request).value_or("");
  HttpHeaders headers = cors_.headers(request);
  HttpReply reply = route(std::move(request), wake);
  reply.headers = std::move(headers);
  return reply;
}

HttpReply Router::route(HttpRequest request, const Wake& wake) const {
  if (cors_.is_preflight(request)) return {cors_.preflight(), {}};
  const std::string& path = request.path;
  if (contains(kPostPaths, path)) return read_body(std::move(request), wake);
  if (path == "/health") return {health_response(service_), {}};
  if (path == "/version") return {version_response(), {}};
  if (path == "/metrics") return {metrics_response(service_), {}};
  if (path == "/openapi.json") return {HttpResponse{.body = openapi_document_}, {}};
  if (path == "/v1/models") return {models_response(service_), {}};
  if (path == "/") return {page_response(root_path_), {}};
  return {
      model_response(service_, percent_decoded(std::string_view(path).substr(kModelPrefix.size()))),
      {}};
}

HttpReply Router::read_body(HttpRequest request, const Wake& wake) const {
  const bool generates = request.path.starts_with("/v1/");
  // Most is refused when least time is left to read it.
  if (generates) {
    if (const Status room = service_.model.engine->check_room({}); !room.ok())
      return {error_response(api_error(room)), {}};
  }
  const std::size_t num_bytes = request.body.size();
  // The service, not this: work that runs when the server ends outlives the router.
  auto work = [&service = service_, wake, request = std::move(request)]() -> HttpReply {
    if (request.path == "/v1/chat/completions")
      return handle_chat_completions(service, request, wake);
    if (request.path == "/v1/completions") return handle_completions(service, request, wake);
    if (request.path == "/tokenize") return {tokenize_response(service, request), {}};
    return {detokenize_response(service, request), {}};
  };
  return service_.text_workers.run({.lane = lane_of_text(num_bytes), .num_bytes = num_bytes}, wake,
                                   std::move(work));
}

}  // namespace pagoda
