#include "server/router.h"

#include <algorithm>
#include <iterator>

#include "server/chat_completions.h"
#include "server/completions.h"
#include "server/information.h"
#include "server/openapi_document.h"
#include "server/page.h"

namespace pagoda {
namespace {

// The facts that endpoints about the server answer from.
struct ServerFacts {
  const ApiService& service;
  const std::string& root_path;
  const std::string& openapi_document;
};

struct Endpoint {
  std::string_view path;
  // GET and HEAD, answered at once; null: POST, whose body a text worker reads.
  HttpResponse (*tell)(const ServerFacts& facts) = nullptr;
  HttpReply (*read)(ApiService& service, const HttpRequest& request, const Wake& wake) = nullptr;
  bool generates = false;  // so that it is refused while the queue has no room

  std::string_view methods() const { return tell == nullptr ? "POST" : "GET, HEAD"; }
};

constexpr Endpoint kEndpoints[] = {
    {.path = "/", .tell = [](const ServerFacts& facts) { return page_response(facts.root_path); }},
    {.path = "/health",
     .tell = [](const ServerFacts& facts) { return health_response(facts.service); }},
    {.path = "/version", .tell = [](const ServerFacts&) { return version_response(); }},
    {.path = "/metrics",
     .tell = [](const ServerFacts& facts) { return metrics_response(facts.service); }},
    {.path = "/openapi.json",
     .tell = [](const ServerFacts& facts) { return HttpResponse{.body = facts.openapi_document}; }},
    {.path = "/v1/models",
     .tell = [](const ServerFacts& facts) { return models_response(facts.service); }},
    {.path = "/v1/completions", .read = handle_completions, .generates = true},
    {.path = "/v1/chat/completions", .read = handle_chat_completions, .generates = true},
    {.path = "/tokenize",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {tokenize_response(service, request), {}};
     }},
    {.path = "/detokenize",
     .read = [](ApiService& service, const HttpRequest& request, const Wake&) -> HttpReply {
       return {detokenize_response(service, request), {}};
     }},
};
// Behind it stands a model's name, percent-encoded. GET and HEAD.
constexpr std::string_view kModelPrefix = "/v1/models/";

// Null for a path that the table lacks.
const Endpoint* find_endpoint(std::string_view path) {
  const auto* const found = std::find_if(std::begin(kEndpoints), std::end(kEndpoints),
                                         [&](const Endpoint& each) { return each.path == path; });
  return found == std::end(kEndpoints) ? nullptr : found;
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

// Returns the methods of a path that is known.
std::string_view methods_of(std::string_view path) {
  const Endpoint* const endpoint = find_endpoint(path);
  return endpoint == nullptr ? "GET, HEAD" : endpoint->methods();
}

std::optional<ApiError> error_of_target(const HttpRequest& head, const std::string& path) {
  if (find_endpoint(path) == nullptr && !is_model_path(path)) {
    return ApiError{404, fmt::format("there is nothing at {} {}", head.method, path), "",
                    "not_found"};
  }
  const std::string_view methods = methods_of(path);
  const bool is_post = methods == "POST";
  const bool is_get = head.method == "GET" || head.method == "HEAD";
  if (is_post ? head.method != "POST" : !is_get) {
    return ApiError{405, fmt::format("{}: expected {}, got {}", path, methods, head.method), "",
                    "method_not_allowed"};
  }
  if (const auto type = head.header("content-type"); is_post && !is_json_type(type)) {
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
  const Endpoint* const endpoint = find_endpoint(request.path);
  if (endpoint == nullptr) {
    const auto name = std::string_view(request.path).substr(kModelPrefix.size());
    return {model_response(service_, percent_decoded(name)), {}};
  }
  if (endpoint->tell == nullptr) return read_body(std::move(request), wake);
  return {endpoint->tell({service_, root_path_, openapi_document_}), {}};
}

HttpReply Router::read_body(HttpRequest request, const Wake& wake) const {
  const Endpoint& endpoint = *find_endpoint(request.path);
  // Most is refused when least time is left to read it.
  if (endpoint.generates) {
    if (const Status room = service_.model.engine->check_room({}); !room.ok())
      return {error_response(api_error(room)), {}};
  }
  const std::size_t num_bytes = request.body.size();
  // The service, not this: work that runs when the server ends outlives the router.
  auto work = [&service = service_, &endpoint, wake, request = std::move(request)] {
    return endpoint.read(service, request, wake);
  };
  return service_.text_workers.run({.lane = lane_of_text(num_bytes), .num_bytes = num_bytes}, wake,
                                   std::move(work));
}

}  // namespace pagoda
